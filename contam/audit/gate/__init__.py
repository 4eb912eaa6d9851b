"""Whether an audit fulfils the rules of a release."""
