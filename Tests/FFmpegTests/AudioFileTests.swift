import FFmpeg
import Foundation
import NIOCore
import Testing

@Suite struct AudioFileTests {
    struct Form: Sendable, CustomTestStringConvertible {
        var name: String
        var rate: Int
        var channels = 1
        var arguments: [String]
        var testDescription: String { self.name }
    }

    static let forms = [
        Form(name: "a.wav", rate: 16_000, arguments: []), Form(name: "b.wav", rate: 44_100, channels: 2, arguments: ["-c:a", "pcm_s24le"]),
        Form(name: "c.mp3", rate: 44_100, arguments: []), Form(name: "d.flac", rate: 48_000, channels: 2, arguments: []),
        Form(name: "e.ogg", rate: 48_000, arguments: ["-c:a", "libopus"]), Form(name: "f.m4a", rate: 32_000, arguments: ["-c:a", "aac"]),
        Form(name: "g.au", rate: 8_000, arguments: ["-c:a", "pcm_mulaw"]), Form(name: "h:i.aiff", rate: 22_050, arguments: []),
    ]

    static func make(_ form: Form, _ path: String, seconds: Int = 3) async throws {
        let tone = "0.5*sin(2*PI*440*t)"
        let source =
            "aevalsrc=\(form.channels == 2 ? tone + "|" + tone : tone):c=\(form.channels == 2 ? "stereo" : "mono"):s=\(form.rate):d=\(seconds)"
        _ = try await Tool.ffmpeg(["-f", "lavfi", "-i", source] + form.arguments + ["file:" + path])
    }

    static func read(_ reader: AudioFileReader) throws -> [PCM] {
        var runs: [PCM] = []
        while let run = try reader.next() { runs.append(run) }
        #expect(try reader.next() == nil)
        return runs
    }

    @Test(arguments: forms) func files(_ form: Form) async throws {
        let scratch = try Scratch()
        try await Self.make(form, scratch.path(form.name))
        let reader = try AudioFileReader(scratch.path(form.name))
        #expect(reader.sampleRate == form.rate && reader.channels == form.channels)
        #expect(reader.durationMs.map { abs($0 - 3_000) < 100 } ?? (form.name == "g.au"))
        let runs = try Self.read(reader)
        #expect(runs.allSatisfy { $0.sampleRate == form.rate && $0.channels == form.channels && $0.count > 0 })
        let plane = runs.flatMap { $0.planes[form.channels - 1] }
        #expect(abs(plane.count - form.rate * 3) < form.rate / 10)
        AudioTests.expectTone(plane, rate: Double(form.rate), noise: 0.02)
    }

    /// Reads a pipe, which cannot seek and has no size.
    @Test func pipe() async throws {
        let scratch = try Scratch()
        let (file, pipe) = (scratch.path("in.wav"), scratch.path("pipe"))
        try await Self.make(Self.forms[0], file)
        try #require(mkfifo(pipe, 0o600) == 0)
        async let writing = Tool.ffmpeg(["-i", file, "-f", "wav", "file:" + pipe])
        let plane = try Self.read(AudioFileReader(pipe)).flatMap { $0.planes[0] }
        _ = try await writing
        #expect(plane.count == 48_000)
        AudioTests.expectTone(plane, rate: 16_000, noise: 0.02)
    }

    @Test func refusals() async throws {
        let scratch = try Scratch()
        #expect(throws: FFmpegError.file(operation: "open", path: scratch.path("none"), errno: ENOENT)) {
            try AudioFileReader(scratch.path("none"))
        }
        try Data("no media\n".utf8).write(to: URL(fileURLWithPath: scratch.path("text.wav")))
        try Data().write(to: URL(fileURLWithPath: scratch.path("empty.mp3")))
        for name in ["text.wav", "empty.mp3"] {
            do {
                _ = try Self.read(AudioFileReader(scratch.path(name)))
                Issue.record("\(name) was read")
            } catch let error as FFmpegError {
                guard case .library = error else {
                    Issue.record("\(error)")
                    continue
                }
            }
        }
        _ = try await Tool.ffmpeg(["-f", "lavfi", "-i", "testsrc2=s=64x64:d=1", scratch.path("video.mp4")])
        #expect(throws: FFmpegError.unsupported("a file without audio (\(scratch.path("video.mp4")))")) {
            try AudioFileReader(scratch.path("video.mp4"))
        }
        try await Self.make(Self.forms[0], scratch.path("long.wav"), seconds: 5)
        #expect(throws: FFmpegError.overLimit(field: "audio of the file (seconds)", found: 3, max: 2)) {
            try Self.read(AudioFileReader(scratch.path("long.wav"), maxSeconds: 2))
        }
        // A playlist cannot make it open other files.
        try await Self.make(Self.forms[5], scratch.path("part.m4a"))
        _ = try await Tool.ffmpeg(["-i", scratch.path("part.m4a"), "-c", "copy", "-f", "mpegts", scratch.path("part.ts")])
        let list = "#EXTM3U\n#EXT-X-TARGETDURATION:3\n#EXTINF:3,\n\(scratch.path("part.ts"))\n#EXT-X-ENDLIST\n"
        try Data(list.utf8).write(to: URL(fileURLWithPath: scratch.path("list.m3u8")))
        #expect(throws: FFmpegError.self) { try Self.read(AudioFileReader(scratch.path("list.m3u8"))) }
    }

    /// The reader skips damaged audio.
    @Test func damage() async throws {
        let scratch = try Scratch()
        try await Self.make(Self.forms[2], scratch.path("a.mp3"), seconds: 10)
        var bytes = try Data(contentsOf: URL(fileURLWithPath: scratch.path("a.mp3")))
        let middle = bytes.count / 2
        for index in middle..<(middle + 3_000) { bytes[index] = UInt8(truncatingIfNeeded: index &* 7_919) }
        try bytes.write(to: URL(fileURLWithPath: scratch.path("b.mp3")))
        let plane = try Self.read(AudioFileReader(scratch.path("b.mp3"))).flatMap { $0.planes[0] }
        #expect(plane.count > 8 * 44_100)
        AudioTests.expectTone(plane, rate: 44_100, noise: 0.02)
    }

    @Test func wav() async throws {
        let scratch = try Scratch()
        let (path, planes) = (scratch.path("out.wav"), [TalkCodecTests.tone(144_000), [Float](repeating: 0.25, count: 144_000)])
        let writer = try WAVWriter(path, channels: 2)
        for start in stride(from: 0, to: 144_000, by: 1_000) {
            try writer.write(PCM(sampleRate: 48_000, planes: planes.map { Array($0[start..<(start + 1_000)]) }))
            // An unfinished file can be read up to its end.
            if start == 96_000 { #expect(try Self.read(AudioFileReader(path)).reduce(0) { $0 + $1.count } == 97_000) }
        }
        try writer.finish()
        try writer.finish()
        let size = try FileManager.default.attributesOfItem(atPath: path)[.size] as? Int
        #expect(size == 44 + 144_000 * 4)
        let reader = try AudioFileReader(path)
        #expect(reader.sampleRate == 48_000 && reader.channels == 2 && reader.durationMs == 3_000)
        let runs = try Self.read(reader)
        for (index, plane) in planes.enumerated() {
            let heard = runs.flatMap { $0.planes[index] }
            #expect(heard.count == plane.count && zip(heard, plane).allSatisfy { abs($0 - $1) < 1e-4 })
        }
        // Other readers agree.
        let probed = try await Tool.must(["ffprobe", "-v", "warning", "-show_entries", "format=duration", "-of", "csv=p=0", path])
        #expect(Double(probed.lines.first ?? "") == 3 && probed.errors.isEmpty, "\(probed.errors)")
    }

    @Test func wavLimits() throws {
        let scratch = try Scratch()
        let writer = try WAVWriter(scratch.path("a.wav"), maxBytes: 2_000)
        try writer.write(PCM(sampleRate: 48_000, planes: [[2, -2, .nan, .infinity, -.infinity]]))
        #expect(throws: FFmpegError.overLimit(field: "WAV file (bytes)", found: 2_010, max: 2_000)) {
            try writer.write(PCM(silence: 1_000, sampleRate: 48_000, channels: 1))
        }
        #expect(throws: FFmpegError.unsupported("writing 2 channels at 48000 Hz")) {
            try writer.write(PCM(silence: 1, sampleRate: 48_000, channels: 2))
        }
        try writer.finish()
        #expect(try Self.read(AudioFileReader(scratch.path("a.wav"))).first?.planes[0].map { $0.rounded() } == [1, -1, 0, 1, -1])
        #expect(throws: FFmpegError.file(operation: "create", path: "/none/a.wav", errno: ENOENT)) { try WAVWriter("/none/a.wav") }
        #expect(throws: FFmpegError.overLimit(field: "channels to write", found: 25, max: 24)) {
            try WAVWriter(scratch.path("b.wav"), channels: 25)
        }
        #expect(throws: FFmpegError.file(operation: "write", path: "/dev/full", errno: ENOSPC)) { try WAVWriter("/dev/full") }
    }
}
