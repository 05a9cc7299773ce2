import Testing

/// Suites of hostile clients, serialized: each measures time beside a canary, and in parallel they would delay each other.
@Suite(.serialized) enum Hostile {}
