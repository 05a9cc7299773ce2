import FFmpeg
import Foundation
import Media
import MediaClips
import NIOCore
import TestSupport
import Testing

@Suite struct FragmentFileTests {
    @Test(arguments: [FragmentFile.Sync.never, .everyFragment, .everyMs(500)]) func whatIsAppendedIsThere(_ policy: FragmentFile.Sync)
        async throws
    {
        let clip = try await Clip.avc.value
        let scratch = try Scratch()
        let pieces = try Pieces(FragmentMuxer(tracks: clip.tracks), clip.samples)
        let file = try FragmentFile(path: scratch.path("rec.mp4"), initialization: pieces.initialization, sync: policy)
        for (index, fragment) in pieces.fragments.enumerated() { try file.append(fragment.bytes, nowMs: Int64(index) * 300) }
        #expect(file.fragments == 6 && file.bytes == Int64(pieces.whole.readableBytes))
        // All bytes are there before the file is closed.
        #expect(try Data(contentsOf: URL(fileURLWithPath: file.path)) == Data(pieces.whole.readableBytesView))
        try file.close()
        #expect(throws: FFmpegError.file(operation: "write", path: file.path, errno: EBADF)) {
            try file.append(pieces.initialization, nowMs: 0)
        }
    }

    @Test func errorsNameTheFile() throws {
        let scratch = try Scratch()
        let path = scratch.path("rec.mp4")
        let bytes = ByteBuffer(repeating: 1, count: 10)
        _ = try FragmentFile(path: path, initialization: bytes, sync: .never)
        #expect(throws: FFmpegError.file(operation: "create", path: path, errno: EEXIST)) {
            try FragmentFile(path: path, initialization: bytes, sync: .never)
        }
        let nowhere = scratch.path("no/rec.mp4")
        #expect(throws: FFmpegError.file(operation: "create", path: nowhere, errno: ENOENT)) {
            try FragmentFile(path: nowhere, initialization: bytes, sync: .never)
        }
        #expect("\(FFmpegError.file(operation: "write", path: "/a", errno: ENOSPC))" == "write /a: No space left on device")
    }

    /// Runs in a child process that is killed while it writes. Appends fragments as fast as it can, and records the sample count of each
    /// afterwards. Runs only if the variables are set.
    @Test(.enabled(if: ProcessInfo.processInfo.environment["EARSHOT_FRAGMENT_WRITER"] != nil, "the child process of another test"))
    func writer() throws {
        let environment = ProcessInfo.processInfo.environment
        let path = try #require(environment["EARSHOT_FRAGMENT_WRITER"])
        let clip = try FLV.frames(try #require(environment["EARSHOT_FRAGMENT_SOURCE"]))
        let tracks = try [Frame.Kind.video, .audio].map { kind in
            try Track(try #require(clip.first { $0.kind == kind && Track.describes($0) }))
        }
        let samples = clip.compactMap { Sample($0) }
        let muxer = try FragmentMuxer(tracks: tracks)
        let file = try FragmentFile(path: path, initialization: muxer.initialization, sync: .never)
        let count = try #require(FileHandle(forWritingAtPath: path + ".count"))
        for round in 0..<Int64(100) {
            for sample in samples {
                var sample = sample
                sample.dts += round * 6_000
                sample.pts += round * 6_000
                if sample.kind == .video, sample.isKeyframe, let fragment = try muxer.flush(before: sample) {
                    try file.append(fragment.bytes, nowMs: 0)
                    try count.write(contentsOf: [UInt8(fragment.samples)])
                }
                try muxer.write(sample)
            }
        }
        // The process must still run when it is killed, however late that is.
        Thread.sleep(forTimeInterval: 300)
    }

    /// Runs in a child process whose files are limited to 64 KiB. A write stops half-way, and later writes succeed.
    @Test(.enabled(if: ProcessInfo.processInfo.environment["EARSHOT_LIMITED_WRITER"] != nil, "the child process of another test"))
    func limitedWriter() throws {
        let path = try #require(ProcessInfo.processInfo.environment["EARSHOT_LIMITED_WRITER"])
        let file = try FragmentFile(path: path, initialization: ByteBuffer(repeating: 0, count: 1_000), sync: .everyFragment)
        try file.append(ByteBuffer(repeating: 1, count: 30_000), nowMs: 0)
        for _ in 0..<2 {
            #expect(throws: FFmpegError.file(operation: "write", path: path, errno: EFBIG)) {
                try file.append(ByteBuffer(repeating: 2, count: 50_000), nowMs: 1)
            }
            #expect(file.bytes == 31_000 && file.fragments == 1)
            #expect(try Data(contentsOf: URL(fileURLWithPath: path)).count == 31_000)
        }
        // Writing goes on once there is room again.
        try file.append(ByteBuffer(repeating: 3, count: 10_000), nowMs: 2)
        try file.close()
        #expect(try Data(contentsOf: URL(fileURLWithPath: path)).suffix(10_001) == Data([1] + [UInt8](repeating: 3, count: 10_000)))
    }

    @Test func aHalfWrittenFragmentIsTakenAway() async throws {
        let scratch = try Scratch()
        let program = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath().path
        // bash counts blocks of 1,024 bytes. The limit's signal (SIGXFSZ) must not end the process.
        let command = "trap '' XFSZ; ulimit -f 64; exec \"$0\" --testing-library swift-testing --filter FragmentFileTests/limitedWriter"
        let outcome = try await Tool.must(["EARSHOT_LIMITED_WRITER=\(scratch.path("rec.mp4"))", "bash", "-c", command, program])
        #expect(outcome.text.contains("1 test") || outcome.errors.contains("1 test"), "\(outcome)")
        #expect(try Data(contentsOf: URL(fileURLWithPath: scratch.path("rec.mp4"))).count == 41_000)
    }

    /// Kills `EARSHOT_KILLS` writers (default 10; `make verify` 50) at random moments.
    @Test(.seeded) func aKilledWriterLosesAtMostTheLastFragment() async throws {
        let clip = try await Clip.avc.value
        let scratch = try Scratch()
        let kills = ProcessInfo.processInfo.environment["EARSHOT_KILLS"].flatMap { Int($0) } ?? 10
        var random = TestRandom()
        var (cut, killed) = (0, 0)
        for kill in 0..<kills {
            let path = scratch.path("\(kill).mp4")
            _ = FileManager.default.createFile(atPath: path + ".count", contents: nil)
            let status = try await Self.killWriter(path, clip.path, after: UInt32.random(in: 0...60_000, using: &random))
            if status == -SIGKILL { killed += 1 }
            // Every recorded fragment is there. One more may follow, whole or not.
            let told = try Data(contentsOf: URL(fileURLWithPath: path + ".count")).map(Int.init)
            do {
                let packets = try await Probe.packets(path, warnings: false)
                #expect(packets.count >= told.reduce(0, +), "\(packets.count) packets of \(told)")
            } catch {
                // ffmpeg cannot open a file that ends within the first few hundred bytes of a fragment, its head, until the file is finished. If the
                // cut is in the list of samples, ffmpeg reports "corrupted TRUN atom"; elsewhere it reports only this error.
                #expect("\(error)".contains("error reading header"), "\(error)")
            }
            let size = try Data(contentsOf: URL(fileURLWithPath: path)).count
            let finished = try MP4Finisher.finish(path, to: path + ".done")
            #expect(finished.packets >= told.reduce(0, +) && finished.lostBytes < size)
            if finished.lostBytes > 0 { cut += 1 }
            for name in [path, path + ".count", path + ".done"] { try FileManager.default.removeItem(atPath: name) }
        }
        #expect(killed == kills)
        print("\(cut) of \(killed) files ended in half a fragment")
    }

    /// Runs this program with the writer as its only test. Kills it `after` microseconds after its first fragment.
    private static func killWriter(_ path: String, _ source: String, after microseconds: UInt32) async throws -> Int32 {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
        process.arguments = ["--testing-library", "swift-testing", "--filter", "FragmentFileTests/writer"]
        process.environment = ProcessInfo.processInfo.environment.merging(
            ["EARSHOT_FRAGMENT_WRITER": path, "EARSHOT_FRAGMENT_SOURCE": source, "SWIFT_BACKTRACE": "enable=no"]
        ) { $1 }
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        let (ends, end) = AsyncStream.makeStream(of: Void.self)
        process.terminationHandler = { _ in end.finish() }
        try process.run()
        let giveUp = ContinuousClock.now + .seconds(120)
        var status = stat()
        while stat(path + ".count", &status) == 0, status.st_size == 0, process.isRunning, ContinuousClock.now < giveUp {
            try await Task.sleep(for: .milliseconds(1))
        }
        try await Task.sleep(for: .microseconds(microseconds))
        kill(process.processIdentifier, SIGKILL)
        for await _ in ends {}
        return process.terminationReason == .exit ? process.terminationStatus : -process.terminationStatus
    }
}
