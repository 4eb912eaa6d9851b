"""Take in a job: read its request and uploads, and accept or refuse it."""
