"""What the tests share: key and value types, the dict oracle, and the cases that the conformance suite is crossed with."""
