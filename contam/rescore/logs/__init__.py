"""Read evaluation logs of many tools into one shape."""
