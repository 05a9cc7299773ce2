import Foundation
import LibC
import RTMP
import Support
import Synchronization
import TestSupport
import Testing

@testable import earshot

/// Lines to pipes that are read, never read, or closed.
@Suite(.timeLimit(.minutes(5))) struct LineWriterTests {
    /// A pipe with a buffer of one page.
    private struct Pipe {
        let read: CInt
        let write: CInt

        init(nonBlocking: Bool = false) throws {
            var ends: [CInt] = [0, 0]
            try #require(pipe(&ends) == 0)
            (self.read, self.write) = (ends[0], ends[1])
            for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
            // F_SETPIPE_SZ
            try #require(fcntl(self.write, 1031, 4_096) >= 4_096)
            if nonBlocking { try #require(fcntl(self.write, F_SETFL, O_NONBLOCK) == 0) }
        }

        /// Reads on a thread of its own until a line satisfies the condition.
        func lines(until isLast: @escaping @Sendable (String) -> Bool) async -> [String] {
            let descriptor = self.read
            return await withCheckedContinuation { done in
                Thread.detachNewThread {
                    var bytes: [UInt8] = []
                    var buffer = [UInt8](repeating: 0, count: 1_000)
                    while true {
                        let count = LibC.read(descriptor, &buffer, buffer.count)
                        guard count > 0 else { break }
                        bytes += buffer[..<count]
                        let last = String(decoding: bytes, as: UTF8.self).split(separator: "\n").last.map(String.init) ?? ""
                        if bytes.last == UInt8(ascii: "\n"), isLast(last) { break }
                    }
                    done.resume(returning: String(decoding: bytes, as: UTF8.self).split(separator: "\n").map(String.init))
                }
            }
        }
    }

    private static func writer(_ pipe: Pipe, _ limits: LineWriter.Limits = LineWriter.Limits()) -> LineWriter {
        LineWriter(descriptor: pipe.write, limits: limits) { "note \($0) \($1.reason)\n" }
    }

    @Test(arguments: [false, true]) func allLinesInOrder(nonBlocking: Bool) async throws {
        let pipe = try Pipe(nonBlocking: nonBlocking)
        let writer = Self.writer(pipe)
        // Some lines exceed what a pipe accepts as a whole.
        let sent = (0..<3_000).map { "\($0) " + String(repeating: "x", count: $0 % 500 == 7 ? 9_000 : $0 % 97) }
        async let read = pipe.lines { $0.hasPrefix("2999 ") }
        for line in sent { writer.write(line + "\n") }
        #expect(await read == sent)
        writer.flush()
    }

    /// Without a reader the writer does not wait; a later reader learns how many lines are missing, and where.
    @Test func aPipeThatNobodyReads() async throws {
        let pipe = try Pipe()
        let writer = Self.writer(pipe, .init(bytes: 100_000, lines: 1_000))
        let before = LogLoss.lines.load(ordering: .relaxed)
        let count = 20_000
        for number in 0..<count { writer.write("\(number)\n") }
        #expect(LogLoss.lines.load(ordering: .relaxed) - before >= UInt64(count - 1_000 - 4_096))
        let begun = StallMeter.machine.start()
        writer.flush(patience: .milliseconds(50), limit: .seconds(1))
        #expect(await StallMeter.machine.passed(since: begun) < .seconds(20), "a stuck pipe does not hold the end up")
        async let read = pipe.lines { $0 == "end" }
        // The note is written as soon as there is room; later lines follow it.
        try await eventually("the note") { writer.acceptsLines }
        writer.write("end\n")
        let lines = await read
        // Each note stands in the place of its lines.
        var next = 0
        var notes = 0
        for line in lines.dropLast() {
            if let number = Int(line) {
                #expect(number == next)
                next = number + 1
            } else {
                notes += 1
                #expect(line.hasPrefix("note ") && line.hasSuffix(" because nobody read the log"), "\(line)")
                next += try Int(line.split(separator: " ").dropFirst().first.map(String.init) ?? "").orThrow()
            }
        }
        #expect(next == count && notes > 0 && lines.last == "end")
    }

    /// A closed reader or a full disk: lines are counted as lost, and nothing worse happens.
    @Test func aDescriptorThatTakesNothing() async throws {
        signal(SIGPIPE, SIG_IGN)
        let pipe = try Pipe()
        close(pipe.read)
        let full = open("/dev/full", O_WRONLY | O_CLOEXEC)
        try #require(full >= 0)
        for descriptor in [pipe.write, full] {
            let before = LogLoss.lines.load(ordering: .relaxed)
            let writer = LineWriter(descriptor: descriptor) { "note \($0) \($1.reason)\n" }
            for number in 0..<10 { writer.write("\(number)\n") }
            try await eventually("the loss") { LogLoss.lines.load(ordering: .relaxed) - before >= 10 }
            let begun = StallMeter.machine.start()
            writer.flush()
            #expect(await StallMeter.machine.passed(since: begun) < .seconds(20))
        }
    }

    /// Losses are reported when writing works again.
    @Test func failuresAreTold() async throws {
        let pipe = try Pipe()
        // The descriptor's file is replaced under the writer, as when a disk has room again.
        let descriptor = open("/dev/full", O_WRONLY | O_CLOEXEC)
        try #require(descriptor >= 0)
        let before = LogLoss.lines.load(ordering: .relaxed)
        let writer = LineWriter(descriptor: descriptor) { "note \($0) \($1.reason)\n" }
        writer.write("lost\n")
        // The counter is the process's: only the writer itself knows when this line is lost.
        writer.flush(patience: .seconds(60), limit: .seconds(60))
        #expect(LogLoss.lines.load(ordering: .relaxed) > before)
        try #require(dup2(pipe.write, descriptor) == descriptor)
        writer.write("kept\n")
        let lines = await pipe.lines { $0 == "kept" }
        #expect(lines == ["note 1 because the log could not be written: No space left on device", "kept"])
    }
}
