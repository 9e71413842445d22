"""The parts of a search, each a small frozen object: space, sampling and update, rates, decoding, adaptation."""
