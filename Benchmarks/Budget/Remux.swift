import FFmpeg
import Media
import MediaClips

/// The cost of a stream in another container. Sends an FLV file's samples through the muxer of HLS and recordings, `rounds` times.
///
/// Reads and cuts with the tests' own code, to which this folder links.
enum Remux {
    struct Failure: Error { let what: String }

    private static let formats: [String: ContainerFormat] = ["fmp4": .fmp4, "mpegts": .mpegTS]
    static var formatNames: String { Self.formats.keys.sorted().joined(separator: "|") }

    /// As in `hls.part`, in milliseconds.
    private static let partMs: Int64 = 200

    /// Nil for an unknown format.
    static func format(_ name: String) -> ContainerFormat? { Self.formats[name] }

    static func run(_ path: String, rounds: Int, _ format: ContainerFormat) throws {
        let frames = try FLV.frames(path)
        let tracks = try [Frame.Kind.video, .audio].map { kind in
            guard let frame = frames.first(where: { $0.kind == kind && Track.describes($0) }) else {
                throw Failure(what: "\(path) has no \(kind) track")
            }
            return try Track(frame)
        }
        let samples = frames.compactMap { Sample($0) }
        for _ in 0..<rounds {
            let pieces = try Pieces(FragmentMuxer(tracks: tracks, format: format), samples, partMs: Self.partMs)
            let count = pieces.fragments.reduce(0) { $0 + Int($1.samples) }
            guard count == samples.count else { throw Failure(what: "\(count) of \(samples.count) samples came out") }
        }
    }
}
