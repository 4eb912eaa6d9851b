"""Export an audit for other tools."""
