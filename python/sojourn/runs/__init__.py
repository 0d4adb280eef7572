"""Running scenarios: results, the cache, and where runs take place."""
