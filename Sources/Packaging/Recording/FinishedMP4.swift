import LibC
import Support

/// The size and duration of a finished MP4: one index, no fragments (ISO/IEC 14496-12 §4.2). A value, read from the top-level boxes.
struct FinishedMP4: Equatable {
    let bytes: Int64
    /// The duration that the index states.
    let durationMs: Int64

    /// Nil when the file has fragments, no index, no complete media, or cannot be read. Blocks.
    init?(_ path: String) {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        guard let status = FileStatus(descriptor: descriptor), status.isRegular else { return nil }
        let size = status.size
        var offset: Int64 = 0
        var movie: Int64?
        var hasMedia = false
        while size - offset >= 8 {
            guard let head = Self.read(descriptor, 16, at: offset) else { return nil }
            var length = Self.number(head, 0..<4)
            if length == 1 { length = head.count == 16 ? Self.number(head, 8..<16) : 0 }
            // An incomplete box does not count.
            guard length >= 8, length <= UInt64(size - offset) else { return nil }
            switch String(decoding: head[4..<8], as: UTF8.self) {
            case "moof": return nil
            case "moov": movie = offset + 8
            case "mdat": hasMedia = true
            default: break
            }
            offset += Int64(length)
        }
        // §8.2.2: `mvhd` is the movie's first box; time scale and duration follow two timestamps.
        guard let movie, hasMedia, let header = Self.read(descriptor, 40, at: movie), header.count == 40,
            String(decoding: header[4..<8], as: UTF8.self) == "mvhd"
        else { return nil }
        let isLong = header[8] == 1
        let scale = Self.number(header, isLong ? 28..<32 : 20..<24)
        let duration = Self.number(header, isLong ? 32..<40 : 24..<28)
        guard scale > 0, duration < UInt64(Int64.max / 1_000) else { return nil }
        self.bytes = size
        self.durationMs = Int64(duration) * 1_000 / Int64(scale)
    }

    private static func number(_ bytes: [UInt8], _ range: Range<Int>) -> UInt64 { bytes[range].reduce(UInt64(0)) { $0 << 8 | UInt64($1) } }

    /// Returns at least the 8 bytes of a box header, or nil.
    private static func read(_ descriptor: CInt, _ count: Int, at offset: Int64) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: count)
        let got = pread(descriptor, &bytes, count, off_t(offset))
        return got >= 8 ? Array(bytes.prefix(got)) : nil
    }
}
