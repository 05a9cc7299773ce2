import Media
import NIOCore

extension FuzzTarget {
    /// A media message as the relay reads it between publisher and viewers: its tag header, tracks and cache slot.
    static let tags = FuzzTarget("tags", maxLength: 1_024) { input in
        var input = input
        let kind: Frame.Kind = [.audio, .video, .data][Int(input.byte()) % 3]
        let bytes = input.rest
        Anywhere.read(bytes) { (payload) throws(MediaError) in try TagRun(kind, payload) }
        switch kind {
        case .video: Anywhere.read(bytes) { (payload) throws(MediaError) in try VideoFormat.from(sequenceHeader: payload) }
        case .audio: Anywhere.read(bytes) { (payload) throws(MediaError) in try AudioFormat.from(tag: payload) }
        case .data: break
        }
    }
}

/// Checks that bytes parse the same wherever they lie in a buffer, without reading beyond them.
enum Anywhere {
    static func read<Result: Equatable>(_ bytes: [UInt8], _ read: (ByteBuffer) throws(MediaError) -> Result) {
        let alone = self.outcome(ByteBuffer(bytes: bytes), read)
        // A parser that reads beyond the slice would take these bytes for more input.
        var around = ByteBuffer(repeating: 0xFF, count: 5)
        around.writeBytes(bytes)
        around.writeRepeatingByte(0x01, count: 70)
        around.moveReaderIndex(forwardBy: 5)
        guard let slice = around.readSlice(length: bytes.count) else { return }
        expect(self.outcome(slice, read) == alone, "what lies around the bytes shows")
    }

    private struct Outcome<Result: Equatable>: Equatable {
        var result: Result?
        var error: MediaError?
    }

    private static func outcome<Result: Equatable>(
        _ bytes: ByteBuffer, _ read: (ByteBuffer) throws(MediaError) -> Result
    ) -> Outcome<Result> {
        do throws(MediaError) {
            return Outcome(result: try read(bytes))
        } catch {
            expect(!"\(error)".isEmpty, "an error without words")
            return Outcome(error: error)
        }
    }
}

private struct TagRun: Equatable {
    var tag: TagInfo
    var tracks: [MediaTrack] = []
    var slot: HeaderSlot?
    /// The error if the tag can be relayed but its tracks cannot be read.
    var error: MediaError?
    var repaired: Repaired

    init(_ kind: Frame.Kind, _ payload: ByteBuffer) throws(MediaError) {
        let frame = try Frame(kind: kind, timestamp: 0, payload: payload)
        self.tag = frame.tag
        self.repaired = try Repaired(frame)
        expect(Int(frame.tag.bodyOffset) <= payload.readableBytes, "a body at \(frame.tag.bodyOffset) of \(payload.readableBytes) bytes")
        expect(!frame.isKeyframe || frame.tag.flags.contains(.coded), "a keyframe without data")
        expect(frame.tag.timestampOffsetNanos < 1_000_000, "\(frame.tag.timestampOffsetNanos) ns")
        var tracks: [MediaTrack] = []
        do throws(MediaError) {
            self.slot = try frame.headerSlot()
            var iterator = try TrackIterator(frame.kind, payload)
            while let track = try iterator.next() {
                expect(track.body.upperBound <= payload.readableBytes, "a track beyond the payload")
                expect(track.body.lowerBound >= tracks.last?.body.upperBound ?? 0, "a track within another")
                tracks.append(track)
            }
        } catch {
            self.error = error
        }
        self.tracks = tracks
        expect(tracks.count <= TrackIterator.maxTracks, "\(tracks.count) tracks")
        expect(self.slot == nil || !frame.tag.flags.contains(.coded), "coded data is cached as a header")
    }
}

/// A frame as the relay sends it on.
private struct Repaired: Equatable {
    var payload: ByteBuffer?
    var header: ByteBuffer?

    init(_ frame: Frame) throws(MediaError) {
        var repair = FrameRepair()
        guard let (once, header) = try Self.relayed(frame, by: &repair) else { return }
        self.payload = once.payload
        self.header = header?.payload
        expect(header?.isSequenceHeader ?? true, "a header that is none")
        // A start code is a byte shorter than a length, and each has a unit behind it.
        expect(once.payload.readableBytes <= 2 * frame.payload.readableBytes, "\(once.payload.readableBytes) bytes")
        guard frame.kind == .video, !once.tag.flags.contains(.unusable) else { return }
        var another = FrameRepair()
        expect(try Self.relayed(once, by: &another)?.frame.payload == once.payload, "what is right is changed")
    }

    private static func relayed(_ frame: Frame, by repair: inout FrameRepair) throws(MediaError) -> (frame: Frame, header: Frame?)? {
        var frame = frame
        let outcome = repair.examine(&frame)
        var tag = frame.tag
        tag.flags.remove(.unusable)
        expect(tag == (try TagInfo.parse(frame.kind, frame.payload)), "the tag and the bytes differ")
        switch outcome {
        case .relay: return (frame, nil)
        case .drop: return nil
        case .precede(let header): return (frame, header)
        }
    }
}
