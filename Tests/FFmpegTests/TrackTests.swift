import FFmpeg
import Foundation
import Media
import NIOCore
import Testing

@Suite struct TrackTests {
    /// Sequence headers of ffmpeg 5.1.9's encoders, and the tracks they describe. `Configurations` in MediaTests names their origin.
    static let headers: [(name: String, kind: Frame.Kind, message: String, codecs: String, numbers: [Int])] = [
        (
            "AVC", .video, "17000000000142c01effe100196742c01eda0280bfe5c044000003000400000300c83c58ba8001000468ce0fc8", "avc1.42c01e",
            [640, 360]
        ),
        (
            "AVC High", .video,
            "170000000001640028ffe1001967640028acd940780227e5c04400000fa40003a9803c60c65801000668ebe3cb22c0fdf8f800", "avc1.640028",
            [1920, 1080]
        ),
        (
            "HEVC", .video,
            "90 68766331 0101600000009000000000003ff000fcfdf8f800000f03200001001840010c01ffff01600000030090000003000003003f95980921000"
                + "1002a42010101600000030090000003000003003fa00502016965959a4932bc05a0200000030020000003032122000100074401c172b46240",
            "hvc1.1.6.L63.90", [640, 360]
        ),
        (
            "HEVC Main 10 by id 12", .video,
            "1c00000000 01022000000090000000000078f000fcfdfafa00000f03200001001840010c01ffff022000000300900000030000030078959809210001002c4"
                + "20101022000000300900000030000030078a003c08010e4d96566924caf016808000003000800000300c84022000100074401c172b46240",
            "hvc1.2.4.L120.90", [1920, 1080]
        ),
        ("AV1", .video, "90 61763031 81010c000a0b0000000cc4ff6700be0010", "av01.0.01M.08", [640, 360]),
        ("AAC", .audio, "af00121056e500", "mp4a.40.2", [44_100, 2]),
        ("HE-AAC", .audio, "af00 2b118800", "mp4a.40.5", [24_000, 2]),
        ("HE-AAC v2", .audio, "af00 eb098800", "mp4a.40.29", [24_000, 1]),
        ("Opus", .audio, "90 4f707573 4f70757348656164 01 02 3801 80bb0000 0000 00", "opus", [48_000, 2]),
        ("Opus without OpusHead", .audio, "90 4f707573", "opus", [48_000, 2]),
        (
            "FLAC", .audio, "90 664c6143 664c614300000022120012000000c70005110bb802f000002580d9b81de011fef694f3e1d33694c8ae61", "fLaC",
            [48_000, 2]
        ),
        // MPEG-1 layer III at 48 kHz, which FLV's rate bits (44.1 kHz) cannot express.
        ("MP3", .audio, "2f fffb9464000000", "mp4a.6B", [48_000, 2]),
        ("MP3, MPEG-2 mono", .audio, "26 fff384c400000000", "mp4a.69", [24_000, 1]),
        ("G.711 A-law", .audio, "72 d5", "", [8_000, 1]),
        ("Speex", .audio, "b6 30", "", [16_000, 1]),
        ("Nellymoser 8 kHz", .audio, "52 00", "", [8_000, 1]),
    ]

    @Test(arguments: headers.indices) func header(_ index: Int) throws {
        let header = Self.headers[index]
        let frame = try Frame(kind: header.kind, timestamp: 0, payload: Self.bytes(header.message))
        #expect(Track.describes(frame))
        let track = try Track(frame)
        #expect(track.kind == header.kind && track.codecsString == header.codecs, "\(track.codecsString)")
        #expect((header.kind == .video ? [track.width, track.height] : [track.sampleRate, track.channels]) == header.numbers)
        #expect(try track == Track(frame))
        if track.isSupported(in: .fmp4) {
            let muxer = try FragmentMuxer(tracks: [track])
            #expect(muxer.initialization.readableBytes > 400 && muxer.mimeType.hasSuffix("/mp4; codecs=\"\(header.codecs)\""))
        }
    }

    static let broken: [(kind: Frame.Kind, message: String, error: FFmpegError)] = [
        (.video, "1700000000", .media(.truncated(field: "avcC version", needed: 1, available: 0))),
        (.video, "1700000000 0142c01effe0", .media(.truncated(field: "avcC PPS count", needed: 1, available: 0))),
        (.video, "1700000000 0142c01effe000", .media(.invalid(field: "avcC SPS count", found: 0, expected: "at least 1"))),
        (
            .video, "17000000000142c01effe100196742c01eda0280bfe5c044000003000400000300c83c58ba8000",
            .media(.invalid(field: "avcC PPS count", found: 0, expected: "at least 1"))
        ),
        (.video, "1700000000 0142c01effe100ff67", .media(.truncated(field: "SPS", needed: 255, available: 1))),
        (
            .video, "1200008402921e73",
            .media(.mismatch(expected: "a sequence header, or audio of a codec without one", found: "another message"))
        ),
        (.video, "90 76703038 01", .unsupported("VP8 video")),
        (.video, "90 76766331 01", .unsupported("VVC video")),
        (.audio, "af00", .media(.truncated(field: "audioObjectType (bits)", needed: 5, available: 0))),
        (.audio, "af00 1180", .media(.truncated(field: "program_config_element (bits)", needed: 10, available: 0))),
        (.audio, "2f00000000", .media(.invalid(field: "MPEG audio sync word", found: 0, expected: "2047"))),
        (.audio, "2fff", .media(.truncated(field: "MPEG audio header", needed: 4, available: 1))),
        (.audio, "90 664c6143 664c6143", .media(.truncated(field: "FLAC block header (bits)", needed: 8, available: 0))),
    ]

    @Test(arguments: broken.indices) func brokenHeader(_ index: Int) throws {
        let (kind, message, expected) = Self.broken[index]
        let frame = try Frame(kind: kind, timestamp: 0, payload: Self.bytes(message))
        do throws(FFmpegError) {
            let track = try Track(frame)
            Issue.record("read as \(track)")
        } catch {
            #expect(error == expected)
        }
    }

    /// A damaged header yields an error or a track, but no crash. It is cut anywhere, or has bits of any byte flipped; a muxer may refuse
    /// the track.
    @Test(arguments: headers.indices) func damagedHeader(_ index: Int) throws {
        let header = Self.headers[index]
        let whole = Array(Self.bytes(header.message).readableBytesView)
        var variants = whole.indices.map { Array(whole[..<$0]) }
        for position in whole.indices {
            for mask in [UInt8(0xFF), 0x80, 0x01] {
                variants.append(whole)
                variants[variants.count - 1][position] ^= mask
            }
        }
        for variant in variants {
            do {
                let frame = try Frame(kind: header.kind, timestamp: 0, payload: ByteBuffer(bytes: variant))
                guard Track.describes(frame) else { continue }
                let muxer = try FragmentMuxer(tracks: [try Track(frame)], format: index % 2 == 0 ? .fmp4 : .mpegTS)
                for time in [Int64(0), 40, 80] {
                    try muxer.write(
                        Sample(kind: header.kind, dts: time, pts: time, isKeyframe: true, payload: ByteBuffer(bytes: [0, 0, 0, 1, 0x65])))
                }
                _ = try muxer.flush()
            } catch {
                #expect(error is FFmpegError || error is MediaError)
            }
        }
    }

    @Test func samples() throws {
        let key = try Frame(kind: .video, timestamp: 1_000, payload: Self.bytes("1701000043 000002ae06"))
        let sample = try #require(Sample(key))
        #expect(sample.dts == 1_000 && sample.pts == 1_067 && sample.isKeyframe && sample.payload == Self.bytes("000002ae06"))
        // An end of sequence, sequence headers, an empty message, a command, and another track hold no sample.
        for message in ["1702000000", "1700000000 01", "1701000000", "5700", "", "96 01 68766331 03 000010 aabb"] {
            #expect(try Sample(Frame(kind: .video, timestamp: 0, payload: Self.bytes(message))) == nil, "\(message)")
        }
        #expect(try Sample(Frame(kind: .data, timestamp: 0, payload: Self.bytes("02000a6f6e4d65746144617461"))) == nil)
        // A message of many tracks yields only the first.
        let many = try Frame(kind: .video, timestamp: 0, payload: Self.bytes("96 11 61766331 00 000006 000000 aabbcc 01 000004 000000 dd"))
        #expect(Sample(many)?.payload == Self.bytes("aabbcc"))
        // The payload may be a slice of a read buffer.
        var buffer = ByteBuffer(repeating: 0x55, count: 9)
        buffer.writeImmutableBuffer(key.payload)
        buffer.writeInteger(UInt64.max)
        let slice = try #require(buffer.getSlice(at: 9, length: key.payload.readableBytes))
        #expect(try Sample(Frame(kind: .video, timestamp: 0, payload: slice))?.payload == Self.bytes("000002ae06"))
    }

    static func bytes(_ hex: String) -> ByteBuffer {
        let digits = hex.filter { !$0.isWhitespace }.compactMap(\.hexDigitValue)
        return ByteBuffer(bytes: stride(from: 0, to: digits.count - 1, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) })
    }
}
