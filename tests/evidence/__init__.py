"""Evidence for tests: real evidence made by others, and evidence that is minted here with roots of its own."""
