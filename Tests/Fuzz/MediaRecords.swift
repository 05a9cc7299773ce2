import Media
import NIOCore

/// The messages of a publisher in one input.
///
/// ```
/// | flags 8 | milliseconds since the previous record SI16 | length UI16 | payload |   repeated
/// flags: kind 2 (audio, video, data) · time in seconds 1 · for the target 5
/// ```
struct MediaRecords: Sequence, IteratorProtocol {
    struct Record {
        var frame: Frame
        var flags: UInt8
    }

    private var input: FuzzInput
    private var timeMs: Int64 = 1_000

    init(_ input: FuzzInput) { self.input = input }

    /// The next message with a valid header. Skips others, which never get this far.
    mutating func next() -> Record? {
        while !self.input.isEmpty {
            let flags = self.input.byte()
            let kind: Frame.Kind = [.audio, .video, .data, .audio][Int(flags & 3)]
            let step = Int64(Int16(bitPattern: self.input.word()))
            self.timeMs += flags & 4 == 0 ? step : step * 1_000
            let length = Int(self.input.word())
            let payload = ByteBuffer(bytes: self.input.pop(length))
            do throws(MediaError) {
                return Record(frame: try Frame(kind: kind, timestamp: self.timeMs, payload: payload), flags: flags >> 3)
            } catch {
                continue
            }
        }
        return nil
    }
}
