package import Media
import NIOCore
package import RTMP

/// A publisher's `onMetaData` (Adobe FLV 10.1 §E.5). A value.
package struct StreamMetadata {
    private let value: AMF0Value

    /// Nil for other frames, and for metadata that cannot be read: it says nothing.
    package init?(_ frame: Frame) {
        guard frame.kind == .data, frame.tag.flags.contains(.metadata) else { return nil }
        var payload = frame.payload
        payload.moveReaderIndex(forwardBy: min(Int(frame.tag.bodyOffset), payload.readableBytes))
        var decoder = AMF0Decoder(payload)
        // The first value is the name.
        guard (try? decoder.next()) != nil, let value = try? decoder.next(), value.properties != nil else { return nil }
        self.value = value
    }

    package subscript(_ name: String) -> AMF0Value? { self.value[name] }

    package var hasVideo: Bool { self.announces("hasVideo", ["videocodecid", "videodatarate", "width"]) }
    package var hasAudio: Bool { self.announces("hasAudio", ["audiocodecid", "audiodatarate", "audiosamplerate"]) }

    /// A plausible positive number, also from text, which some encoders write; nil otherwise.
    func figure(_ name: String) -> Double? {
        guard let number = self[name]?.number ?? self[name]?.string.flatMap(Double.init), number > 0, number < 1e7 else { return nil }
        return number
    }

    private func announces(_ flag: String, _ names: [String]) -> Bool {
        if let flag = self[flag]?.boolean { return flag }
        return names.contains { name in
            guard let entry = self[name] else { return false }
            // A codec's name or a number. Encoders write 0 for a kind that they do not send; an `audiocodecid` of 0 may also be PCM.
            return entry.string.map { !$0.isEmpty } ?? entry.number.map { $0 > 0 } ?? false
        }
    }
}
