/// A listener's place in a channel. Any thread.
package protocol TalkListening: AnyObject, Sendable {
    var codec: TalkCodec { get }
    /// Whether its channel has ended.
    var isOver: Bool { get }
    /// False once the listener was thrown out, possibly before its play began.
    var mayPlay: Bool { get }
    /// Call once.
    func end()
}
