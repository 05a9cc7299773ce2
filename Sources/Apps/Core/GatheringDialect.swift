package import Support

/// A kind of gathering: the members, tickets and queue of a ``Gathering``, with rules and words of its own on top. A value without a clock.
package protocol GatheringDialect: Sendable {
    var gathering: Gathering { get }
    /// The stored form.
    var state: JSONValue { get }
    /// When ``Gathering/Input/tick`` has something to do next, in milliseconds since 1970; nil when never.
    var nextDeadlineMs: Int64? { get }
    /// Whether nothing would be lost if it were forgotten.
    var isIdle: Bool { get }
    /// Further members of the greeting of one that connects, besides people, queue and tickets.
    func greeting(for member: Gathering.Member) -> [JSONValue.Member]
    /// Applies an input that all kinds have. `nowMs`: milliseconds since 1970. Throws a refusal and leaves everything as it was.
    mutating func apply(_ input: Gathering.Input, nowMs: Int64) throws(GatheringRefusal) -> [Gathering.Effect]
}

extension GatheringDialect {
    package func greeting(for member: Gathering.Member) -> [JSONValue.Member] { [] }
}

extension Gathering: GatheringDialect {
    package var gathering: Gathering { self }
}
