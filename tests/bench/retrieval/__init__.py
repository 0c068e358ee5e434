"""The judge of answers: questions made from packages, asked of stores, in one ledger."""
