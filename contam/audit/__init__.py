"""What an auditor signs: checks, calibration, review and the pack that holds them."""
