/// A node's place among those that share a store.
struct NodeSeat: Sendable {
    let number: Int64
    let name: String
    let lease: NodeLease
    /// As ``Membership/lastLeftPush``.
    let lastLeftPush: Int64?
}
