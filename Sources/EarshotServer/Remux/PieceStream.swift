import FFmpeg
import Media
import NIOCore

/// A stream whose messages are pieces of fragmented MP4: the relay fans them out to viewers as it does a publisher's frames, from one ring,
/// starting at a keyframe. Its registry is ``ServerCore/pieces``, under the path of the stream that it was made from.
///
/// Owned by one ``StreamRemuxer``.
final class PieceStream {
    private let stream: DerivedStream
    /// Of the newest beginning.
    private var initialization: ByteBuffer?

    init(_ stream: DerivedStream) { self.stream = stream }

    var viewers: Int { self.stream.viewers }

    /// What every piece from now on builds on. Before it viewers are told of the type as WebSocket text, `{"mimeType": …}`, which is the
    /// first they get; over HTTP, where one body has one initialization segment, another one ends the body: readers of files take the first
    /// and decode by that what is of the second, even where both have one type.
    func begin(_ initialization: ByteBuffer, mimeType: String) {
        var frames: [Frame] = []
        if initialization != self.initialization {
            self.initialization = initialization
            // Whose answer names the new type must not be sent pieces of the old one.
            self.stream.dropGOP()
            let text = ByteBuffer(string: "{\"mimeType\":\(JSONValue.string(mimeType).text)}")
            frames.append(Frame(kind: .data, timestamp: 0, payload: text, tag: TagInfo(flags: .metadata)))
        }
        frames.append(Frame(kind: .video, timestamp: 0, payload: initialization, tag: TagInfo(flags: .sequenceHeader)))
        self.stream.publish(frames)
    }

    func publish(_ fragment: Fragment) {
        let flags: TagInfo.Flags = fragment.isIndependent ? [.coded, .keyframe] : .coded
        self.stream.publish([Frame(kind: .video, timestamp: fragment.startMs, payload: fragment.bytes, tag: TagInfo(flags: flags))])
    }

    /// Its viewers are told that it is over.
    func end() { self.stream.end() }
}
