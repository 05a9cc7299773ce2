import Media
import NIOCore
import RTMP

/// The kinds of media that a stream's metadata announces. The packager waits for them, so that players know them from the start. A plain value.
///
/// Encoders name a kind by its codec, `videocodecid` and `audiocodecid` (Adobe FLV 10.1 §E.5), and omit kinds that they do not send; some also send
/// `hasVideo` and `hasAudio`.
struct AnnouncedTracks: Equatable {
    private(set) var hasVideo = false
    private(set) var hasAudio = false
    /// The metadata says that there is no video, as that of talk mixes does. Then there is no wait for the second kind.
    private(set) var excludesVideo = false

    private static let video = ["videocodecid", "videodatarate", "width"]
    private static let audio = ["audiocodecid", "audiodatarate", "audiosamplerate"]

    init() {}

    /// Nil for frames that are not metadata or cannot be read.
    init?(_ frame: Frame) {
        guard frame.kind == .data, frame.tag.flags.contains(.metadata) else { return nil }
        var payload = frame.payload
        payload.moveReaderIndex(forwardBy: min(Int(frame.tag.bodyOffset), payload.readableBytes))
        var decoder = AMF0Decoder(payload)
        do throws(AMFError) {
            _ = try decoder.next()
            guard let value = try decoder.next(), value.properties != nil else { return nil }
            self.hasVideo = Self.announces(value, "hasVideo", Self.video)
            self.hasAudio = Self.announces(value, "hasAudio", Self.audio)
            self.excludesVideo = value["hasVideo"]?.boolean == false
        } catch {
            // Broken metadata announces nothing; the frames themselves decide.
            return nil
        }
    }

    private static func announces(_ value: AMF0Value, _ flag: String, _ names: [String]) -> Bool {
        if let flag = value[flag]?.boolean { return flag }
        return names.contains { name in
            guard let entry = value[name] else { return false }
            // A codec's name or a number. Encoders write 0 for a kind they do not send; an `audiocodecid` of 0 may also be PCM.
            return entry.string.map { !$0.isEmpty } ?? entry.number.map { $0 > 0 } ?? false
        }
    }
}
