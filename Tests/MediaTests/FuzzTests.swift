import Media
import NIOCore
import Testing

/// Runs every parser for this kind of message. They throw only `MediaError` and must not trap.
@discardableResult
func visit(_ kind: Frame.Kind, _ payload: ByteBuffer?) -> (video: VideoFormat?, audio: AudioFormat?) {
    guard let payload else { return (nil, nil) }
    var formats: (video: VideoFormat?, audio: AudioFormat?) = (nil, nil)
    do throws(MediaError) {
        switch kind {
        case .video: formats.video = try VideoFormat.from(sequenceHeader: payload)
        case .audio: formats.audio = try AudioFormat.from(tag: payload)
        case .data: break
        }
    } catch {}
    do throws(MediaError) {
        let frame = try Frame(kind: kind, timestamp: 0, payload: payload)
        precondition(Int(frame.tag.bodyOffset) <= payload.readableBytes, "a body offset beyond the payload")
        precondition(!frame.isKeyframe || frame.tag.flags.contains(.coded), "a keyframe without data")
        _ = try frame.headerSlot()
        var count = 0
        var tracks = try TrackIterator(kind, payload)
        while let track = try tracks.next() {
            precondition(track.body.upperBound <= payload.readableBytes)
            count += 1
        }
        precondition(count <= TrackIterator.maxTracks)
    } catch {}
    return formats
}

@Suite struct FuzzTests {
    /// Xorshift64, Marsaglia 2003: the same inputs on every machine.
    struct Random {
        var state: UInt64

        mutating func next(below bound: Int) -> Int {
            self.state ^= self.state << 13
            self.state ^= self.state >> 7
            self.state ^= self.state << 17
            return Int(truncatingIfNeeded: self.state >> 1) % max(bound, 1)
        }
    }

    static let seeds: [(kind: Frame.Kind, bytes: [UInt8])] =
        Vectors.all.map { ($0.kind, Array($0.payload.readableBytesView)) }
        + Configurations.video.map { (.video, Array(hex($0.message).readableBytesView)) }
        + Configurations.audio.map { (.audio, Array(hex($0.message).readableBytesView)) }

    static func mutate(_ bytes: inout [UInt8], _ random: inout Random) {
        for _ in 0...random.next(below: 4) {
            let position = random.next(below: bytes.count)
            switch random.next(below: 6) {
            case 0 where !bytes.isEmpty: bytes[position] ^= 1 << UInt8(random.next(below: 8))
            case 1 where !bytes.isEmpty: bytes[position] = UInt8(random.next(below: 256))
            case 2 where !bytes.isEmpty: bytes[position] = [0, 0xFF, 0x7F, 0x80][random.next(below: 4)]
            case 3 where !bytes.isEmpty: bytes.removeSubrange(position..<min(bytes.count, position + 1 + random.next(below: 4)))
            case 4: bytes.insert(UInt8(random.next(below: 256)), at: position)
            default: bytes.removeLast(random.next(below: bytes.count / 4 + 1))
            }
        }
    }

    /// Four separate test cases, to use up to four cores.
    @Test(arguments: [1, 2, 3, 4]) func mutatedMessages(_ run: UInt64) {
        var random = Random(state: 0x9E37_79B9_7F4A_7C15 &* run)
        for round in 0..<30_000 {
            var (kind, bytes) = Self.seeds[random.next(below: Self.seeds.count)]
            if round % 16 == 0 { bytes = (0..<random.next(below: 64)).map { _ in UInt8(random.next(below: 256)) } }
            Self.mutate(&bytes, &random)
            visit(kind, ByteBuffer(bytes: bytes))
        }
    }

    /// Calls the parsers below the tag directly, so that no tag parser rejects the input first.
    @Test func mutatedRecords() {
        var random = Random(state: 0xD1B5_4A32_D192_ED03)
        for _ in 0..<10_000 {
            var bytes = Self.seeds[random.next(below: Self.seeds.count)].bytes
            bytes.removeFirst(min(bytes.count, random.next(below: 40)))
            Self.mutate(&bytes, &random)
            let record = ByteBuffer(bytes: bytes)
            do throws(MediaError) { _ = try AVCSequenceParameterSet(nal: ByteBuffer(bytes: [0x67] + bytes)) } catch {}
            do throws(MediaError) { _ = try HEVCSequenceParameterSet(nal: ByteBuffer(bytes: [0x42, 0x01] + bytes)) } catch {}
            do throws(MediaError) { _ = try AV1SequenceHeader(record) } catch {}
            do throws(MediaError) { _ = try AudioSpecificConfig(record) } catch {}
            do throws(MediaError) { _ = try HEVCConfiguration(record) } catch {}
        }
    }
}
