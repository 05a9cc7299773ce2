import CommandSupport
import Media
import NIOCore

/// The stream that the doctor pushes: a still picture of 320 × 180 pixels, H.264 baseline, ten frames a second and a keyframe each second,
/// with a tone of 445 Hz, AAC at 48 kHz, mono. Made with x264 and FFmpeg's AAC encoder. A plain value.
struct DoctorClip: Sendable {
    /// Milliseconds.
    static let frameMs: Int64 = 100
    /// Two coded runs hold a whole number of waves, so that they can be repeated without a click.
    static let toneHz = 445.3125
    static let sampleRate = 48_000
    static let size = (width: 320, height: 180)

    let videoHeader: ByteBuffer
    let audioHeader: ByteBuffer
    /// A keyframe and nine other frames.
    let pictures: [ByteBuffer]
    let tones: [ByteBuffer]
    /// All coded messages, to recognise them when they come back.
    let coded: Set<ByteBuffer>

    init() {
        self.videoHeader = Self.bytes(
            "17000000000142c00bffe100196742c00bd901419f9f011000000300100000030140f142a48001000568cb8084b2")
        self.audioHeader = Self.bytes("af00118856e500")
        self.pictures = [Self.bytes(Self.keyframe)] + Self.others.map { Self.bytes("270100000000000006" + $0) }
        self.tones = Self.runs.map { Self.bytes("af01" + $0) }
        self.coded = Set(self.pictures + self.tones)
    }

    /// A push's messages with a time in the range (milliseconds), in order, without headers.
    func messages(from start: Int64, to end: Int64, video: Bool = true, audio: Bool = true) -> [(kind: Frame.Kind, ms: Int64, ByteBuffer)] {
        var out: [(kind: Frame.Kind, ms: Int64, ByteBuffer)] = []
        guard start < end else { return out }
        if video {
            var index = (start + Self.frameMs - 1) / Self.frameMs
            while index * Self.frameMs < end {
                out.append((.video, index * Self.frameMs, self.pictures[Int(index % Int64(self.pictures.count))]))
                index += 1
            }
        }
        if audio {
            let rate = Int64(Self.sampleRate)
            // The first run that begins at `start` or later; a run has 1,024 samples.
            var index = (start * rate + 1_024 * 1_000 - 1) / (1_024 * 1_000)
            while index * 1_024 * 1_000 / rate < end {
                if index * 1_024 * 1_000 / rate >= start {
                    out.append((.audio, index * 1_024 * 1_000 / rate, self.tones[Int(index % Int64(self.tones.count))]))
                }
                index += 1
            }
        }
        return out.sorted { $0.ms < $1.ms }
    }

    private static func bytes(_ hex: String) -> ByteBuffer {
        let digits = hex.compactMap(\.hexDigitValue)
        return ByteBuffer(bytes: stride(from: 0, to: digits.count - 1, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) })
    }

    private static let keyframe =
        "1701000000000001626588843f118a00020731c0031c0064e4e4e4e4e4e4e4e4e4e4e4e4e4e4e4e4e4e4ebaffffe305dc0e406332c252601f81c8669"
        + "7c0e90e59d71326b6b6bffe3c305500e02381c86697e074872f4f5d75d75d75d75d75d75d3ccaad6b6b6b33eeaebaebaebaebaebaebaeba7a7aebae9"
        + "ebaebaebaebaebaebaebae9e9ebaeba7aebaebaebaebaebaebaebfc3f88705d0710111e15b20957c0e219e5f03c852cebce5adadafe1c7fc154038b5"
        + "60710cf2fc0f214bd75d75ffff10c1740f06665f08488c21223e0c94be0c94b3aca8a9adadaffe3c3c1542b682b6b064a5f83252f4f5d75d2d75d75d"
        + "75d75d74f5cded4b4b33e653d75d75d75d75d75d75d74f37fd75d74f4f5d75d75d75d75d75d75d3d3d74b4b4f4f5d75d75d75d75d75d75fe110ff82c"
        + "e0e822302448091283672fc1b397dadadadaf8c3ffc156641b397f06ce5fd3d75d75d75d75d75d75d75d75d75d74f5d75d75d75d75d75d75d75d75d7"
        + "5d75e0"
    private static let others = [
        "419a39e03c60", "419a54780f18", "419a63c078c0", "419a83c078c0", "419aa3c078c0", "419ac3c078c0", "419ae3c078c0", "419b03c078c0",
        "419b23c078c0",
    ]
    private static let runs = [
        "010a318afa210e8c43a1123c77ff4fff6fdfffbfdf8eba73e7373acc6bb7acd4ddeeb5928657f61f06dbfa36ca2454f188a6b80548239047fbf644e1"
            + "4739fbe7900384a44c937a4ba929835de64ca26482574b80",
        "010a319104fd10874621d0891e37ff4fff6fdfffbfd6bae9cf9cc75955ae5eb35377cd6aa504b0eb98e3676306855160c7ae1441185b3017602efd75"
            + "b5de1894a7d5ec00ec0db434146b5134a9706f9dcb925eea09d26e3c",
    ]
}
