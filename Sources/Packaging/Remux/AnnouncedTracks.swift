import Media
import RTMP
import Relay

/// The kinds of media that a stream's metadata announces. The packager waits for them, so that players know them from the start. A plain value.
///
/// Encoders name a kind by its codec, `videocodecid` and `audiocodecid` (Adobe FLV 10.1 §E.5), and omit kinds that they do not send; some also send
/// `hasVideo` and `hasAudio`.
struct AnnouncedTracks: Equatable {
    private(set) var hasVideo = false
    private(set) var hasAudio = false
    /// The metadata says that there is no video, as that of talk mixes does. Then there is no wait for the second kind.
    private(set) var excludesVideo = false

    init() {}

    /// Nil for frames that are not metadata or cannot be read.
    init?(_ frame: Frame) {
        guard let metadata = StreamMetadata(frame) else { return nil }
        self.hasVideo = metadata.hasVideo
        self.hasAudio = metadata.hasAudio
        self.excludesVideo = metadata["hasVideo"]?.boolean == false
    }
}
