import FFmpeg
import Media
import NIOCore

/// A stream whose messages are pieces of fragmented MP4: the relay fans them out to viewers as it does a publisher's frames, from one ring,
/// starting at a keyframe. Its registry is ``ServerCore/pieces``, under the path of the stream that it was made from.
///
/// Owned by one ``StreamRemuxer``.
final class PieceStream {
    private let stream: DerivedStream

    init(_ stream: DerivedStream) { self.stream = stream }

    var viewers: Int { self.stream.viewers }

    /// What every piece from now on builds on.
    func begin(_ initialization: ByteBuffer) {
        self.stream.publish([Frame(kind: .video, timestamp: 0, payload: initialization, tag: TagInfo(flags: .sequenceHeader))])
    }

    func publish(_ fragment: Fragment) {
        let flags: TagInfo.Flags = fragment.isIndependent ? [.coded, .keyframe] : .coded
        self.stream.publish([Frame(kind: .video, timestamp: fragment.startMs, payload: fragment.bytes, tag: TagInfo(flags: flags))])
    }

    /// Its viewers are told that it is over.
    func end() { self.stream.end() }
}
