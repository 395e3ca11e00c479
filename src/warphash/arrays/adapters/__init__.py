"""The adapters of the array libraries. Only a library that the caller has imported already is ever touched."""
