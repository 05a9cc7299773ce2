/// How a node keeps up with those that share its registry. A value.
package struct NodeStatus: Sendable {
    package let isKeeper: Bool
    /// What is left of its lease; 0 when it has ended.
    package let leaseMs: Int64
    /// How long ago it last knew everything that the others had done.
    package let signalLagMs: Int64
    /// The database's clock less this machine's.
    package let clockAheadMs: Int64
}
