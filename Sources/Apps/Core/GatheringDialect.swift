package import Support

/// A kind of gathering: the members, tickets and queue of a ``Gathering``, with its own rules and messages on top. A value without a clock.
package protocol GatheringDialect: Sendable {
    var gathering: Gathering { get }
    /// The stored form.
    var state: JSONValue { get }
    /// When ``Gathering/Input/tick`` has something to do next, in milliseconds since 1970; nil when never.
    var nextDeadlineMs: Int64? { get }
    /// Whether it can be discarded without loss.
    var isIdle: Bool { get }
    /// JSON members to add to a connecting member's greeting, besides people, queue and tickets.
    func greeting(for member: Gathering.Member) -> [JSONValue.Member]
    /// Applies an input of the core. `nowMs`: milliseconds since 1970. Throws a refusal, which changes nothing.
    mutating func apply(_ input: Gathering.Input, nowMs: Int64) throws(GatheringRefusal) -> [Gathering.Effect]
}

extension GatheringDialect {
    package func greeting(for member: Gathering.Member) -> [JSONValue.Member] { [] }
}

extension Gathering: GatheringDialect {
    package var gathering: Gathering { self }
}
