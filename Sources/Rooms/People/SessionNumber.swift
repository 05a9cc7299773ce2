/// How the ids of connections are made.
package enum SessionNumber {
    /// The number of the node is above so many bits. JavaScript's numbers hold 53.
    package static let nodeShift: UInt64 = 40
}
