"""Divide a scan into leases that other processes and machines work on, and merge their parts."""
