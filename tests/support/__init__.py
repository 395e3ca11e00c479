"""What the tests share: key and value types, the dict oracle, and the cases of the conformance suite."""
