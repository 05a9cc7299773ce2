import Media
import NIOCore
import RTMP

/// Which kinds of media a stream's metadata announces: what is announced is waited for, so that players know of it from the start. A
/// plain value.
///
/// Encoders name a kind by its codec, `videocodecid` and `audiocodecid` (Adobe FLV 10.1 §E.5), and leave out what they do not send; some say
/// `hasVideo` and `hasAudio` as well.
struct AnnouncedTracks: Equatable {
    private(set) var hasVideo = false
    private(set) var hasAudio = false

    private static let video = ["videocodecid", "videodatarate", "width"]
    private static let audio = ["audiocodecid", "audiodatarate", "audiosamplerate"]

    init() {}

    /// Nil for what is no metadata, or cannot be read.
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
        } catch {
            // Broken metadata announces nothing; what comes is what counts.
            return nil
        }
    }

    private static func announces(_ value: AMF0Value, _ flag: String, _ names: [String]) -> Bool {
        if let flag = value[flag]?.boolean { return flag }
        return names.contains { name in
            guard let entry = value[name] else { return false }
            // A codec's name, or a number: 0 is what encoders write for what there is not, but for audio's codec, which may be PCM.
            return entry.string.map { !$0.isEmpty } ?? entry.number.map { $0 > 0 } ?? false
        }
    }
}
