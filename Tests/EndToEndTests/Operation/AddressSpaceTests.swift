import Foundation
import ServerTestSupport
import TestSupport
import Testing

/// A server whose address space is limited (`ulimit -v`).
@Suite struct AddressSpaceTests {
    private static func under(_ mebibytes: Int) -> [String] {
        let bytes = mebibytes << 20
        return ["prlimit", "--as=\(bytes):\(bytes)"]
    }

    /// Where it does not even fit, it says what it needs and ends, instead of waiting for threads.
    @Test func tooLittle() async throws {
        try await Fixture.withDirectory { directory in
            let data = directory.appendingPathComponent("data").path
            let command = ["serve", "--rtmp", "127.0.0.1:0", "--http", "127.0.0.1:0", "--data", data]
            let ended = try await ClientProcess.run(Self.under(Self.least) + [EarshotProcess.binary()] + command, within: 60)
            #expect(ended.status == 1, "\(ended.errors)")
            for words in ["limit of address space is \(Self.least) MiB", "needed are", "ulimit -v", "LimitAS="] {
                #expect(ended.errors.contains(words), "\(ended.errors)")
            }
        }
    }

    /// Where it fits, streams get what is left, and the server ends as it should.
    @Test func memoryIsFitted() async throws {
        try await Fixture.withDirectory { directory in
            let config = directory.appendingPathComponent("earshot.yaml")
            try "{limits: {memory: 4GiB}}".write(to: config, atomically: true, encoding: .utf8)
            try await EarshotProcess.serve(data: directory, ["--config", config.path], under: Self.under(2_048)) { earshot in
                try await eventually("the line") { earshot.process.errorsSoFar.contains(" instead of 4294967296") }
                #expect(earshot.process.errorsSoFar.contains("too low for limits.memory"), "\(earshot.process.errorsSoFar)")
                #expect(try await HTTPAnswer.get("\(earshot.http)/readyz").status == 200)
                earshot.process.send(SIGTERM)
                let ended = try await earshot.process.outcome()
                #expect(ended.status == 0, "\(ended.errors)")
            }
        }
    }

    /// MiB in which the program itself is loaded, but no server runs.
    private static let least = 640
}
