import FFmpeg
import Media
import NIOCore
import Streaming
import Support

/// A stream of fragmented MP4 pieces. The relay sends them to viewers like a publisher's frames, from one ring, starting at a keyframe. Its
/// registry is ``RemuxTable/pieces``, under the path of the source stream.
///
/// Owned by one ``StreamRemuxer``.
final class FragmentStream {
    private let stream: DerivedStream
    /// The newest initialization segment.
    private var initialization: ByteBuffer?

    init(_ stream: DerivedStream) { self.stream = stream }

    var viewers: Int { self.stream.viewers }

    /// Publishes the initialization segment of all pieces from now on. WebSocket viewers first get the type as text, `{"mimeType": …}`. An HTTP body
    /// has one initialization segment, so a new one ends the body: players would otherwise decode the rest with the first segment, even if both have
    /// the same type.
    func begin(_ initialization: ByteBuffer, mimeType: String) {
        var frames: [Frame] = []
        if initialization != self.initialization {
            self.initialization = initialization
            // Viewers that have got the new type must not get pieces of the old one.
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

    /// New viewers begin with the next piece that can be the first.
    func dropCached() { self.stream.dropGOP() }

    /// Ends the stream and notifies its viewers.
    func end() { self.stream.end() }
}
