import Access
package import Streaming
import Synchronization
import Talk

/// A listener's place in a channel. Any thread.
package final class TalkListenSession: TalkListening {
    let target: TalkAddress
    package let codec: TalkCodec
    let session: Int64
    let role: (any ConnectedRole)?
    private let channel: TalkChannel
    private let isThrownOut = Atomic<Bool>(false)

    init(_ channel: TalkChannel, _ target: TalkAddress, codec: TalkCodec, session: Int64, role: (any ConnectedRole)?) {
        self.channel = channel
        self.target = target
        self.codec = codec
        self.session = session
        self.role = role
    }

    var output: TalkOutputs.Key { TalkOutputs.Key(target: self.target, codec: self.codec) }

    package var isOver: Bool { self.channel.isOver }
    package var mayPlay: Bool { !self.isThrownOut.load(ordering: .acquiring) }

    func throwOut() { self.isThrownOut.store(true, ordering: .releasing) }

    package func end() { self.channel.ended(self) }
}
