import Foundation
import Relay
import ServerConfiguration
import Support
import TestSupport
import Testing

@testable import Streaming

@Suite struct SystemMemoryTests {
    private static let mebibyte = 1 << 20

    /// Runs the body with files as Linux shows them, in a temporary root.
    private static func system<Result>(_ files: [String: String], _ body: (SystemMemory) throws -> Result) throws -> Result {
        let root = FileManager.default.temporaryDirectory.appendingPathComponent("earshot-system-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: root) }
        for (path, text) in files {
            let file = root.appendingPathComponent(path)
            try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
            try text.write(to: file, atomically: false, encoding: .utf8)
        }
        return try body(SystemMemory(root: root.path + "/"))
    }

    private static let machine = ["proc/meminfo": "MemFree: 5 kB\nMemTotal:       1048576 kB\n"]
    private static let second = [
        "proc/self/cgroup": "0::/system.slice/earshot.service\n",
        "sys/fs/cgroup/memory.max": "max\n",
    ]
    private static let first = [
        "proc/self/cgroup": "9:name=systemd:/\n4:cpu,memory:/jobs/one\n0::/\n"
    ]

    private static let trees: [(name: String, files: [String: String], mebibytes: Int)] = [
        ("the machine alone", [:], 1_024),
        ("version 2 without a limit", Self.second, 1_024),
        ("version 2", Self.second.merging(["sys/fs/cgroup/system.slice/earshot.service/memory.max": "536870912\n"]) { $1 }, 512),
        ("one above", Self.second.merging(["sys/fs/cgroup/system.slice/memory.max": "104857600\n"]) { $1 }, 100),
        (
            "both: the smaller one",
            Self.second.merging([
                "sys/fs/cgroup/system.slice/earshot.service/memory.max": "536870912\n",
                "sys/fs/cgroup/system.slice/memory.max": "268435456\n",
            ]) { $1 }, 256
        ),
        ("more than the machine has", Self.second.merging(["sys/fs/cgroup/system.slice/memory.max": "109951162777600\n"]) { $1 }, 1_024),
        ("a container that sees its own top only", Self.second.merging(["sys/fs/cgroup/memory.max": "209715200\n"]) { $1 }, 200),
        ("beside version 1", Self.second.merging(["sys/fs/cgroup/unified/system.slice/memory.max": "209715200\n"]) { $1 }, 200),
        ("version 1", Self.first.merging(["sys/fs/cgroup/memory/jobs/one/memory.limit_in_bytes": "314572800\n"]) { $1 }, 300),
        ("version 1 above", Self.first.merging(["sys/fs/cgroup/memory/memory.limit_in_bytes": "314572800\n"]) { $1 }, 300),
        (
            "version 1 without a limit",
            Self.first.merging(["sys/fs/cgroup/memory/jobs/one/memory.limit_in_bytes": "9223372036854771712\n"]) { $1 },
            1_024
        ),
        ("nonsense", ["proc/self/cgroup": "0::/../../x\nx\n4:memory\n", "sys/fs/cgroup/x/memory.max": "-5\n"], 1_024),
    ]

    @Test(arguments: trees) func available(name: String, files: [String: String], mebibytes: Int) throws {
        try Self.system(Self.machine.merging(files) { $1 }) { system in
            #expect(system.available == mebibytes * Self.mebibyte, "\(name)")
            #expect(system.usualLimit == mebibytes * Self.mebibyte * 6 / 10, "\(name)")
        }
    }

    @Test func nothingToBeRead() throws {
        try Self.system([:]) { system in
            #expect(system.available == 4 << 30 && system.resident == nil)
        }
    }

    @Test func theSettingGoesFirst() throws {
        try Self.system(Self.machine) { system in
            #expect(MemoryBudget(ServerConfig.Limits(), system: system).ledger.limit == 1_024 * Self.mebibyte * 6 / 10)
            var limits = ServerConfig.Limits()
            limits.memoryBytes = 20 * Self.mebibyte
            #expect(MemoryBudget(limits, system: system).ledger.limit == 20 * Self.mebibyte)
        }
    }

    /// Reads this machine's own files.
    @Test func here() throws {
        let system = SystemMemory()
        #expect(system.available > 64 * Self.mebibyte && system.available < 1 << 50)
        #expect(try system.resident.orThrow() > Self.mebibyte)
    }
}

@Suite struct TrimScheduleTests {
    private static func load(_ resident: Int, _ charged: Int = 0, _ connections: Int = 0) -> TrimSchedule.Load {
        TrimSchedule.Load(resident: resident << 20, charged: charged << 20, connections: connections)
    }

    /// A class, since `#expect` cannot call a mutating method.
    private final class Trims {
        var schedule = TrimSchedule()
        func due(_ load: TrimSchedule.Load, nowMs: Int64) -> Bool { self.schedule.isDue(load, nowMs: nowMs) }
    }

    @Test func afterABurst() {
        let trims = Trims()
        #expect(!trims.due(Self.load(50), nowMs: 0))
        // Media in use cannot be given back.
        #expect(!trims.due(Self.load(75, 25), nowMs: 5_000))
        #expect(!trims.due(Self.load(75, 5), nowMs: 10_000))
        // Not during the burst.
        #expect(!trims.due(Self.load(75, 20), nowMs: 14_000))
        #expect(!trims.due(Self.load(75, 5), nowMs: 16_000))
        #expect(trims.due(Self.load(75, 5), nowMs: 21_000))
        trims.schedule.trimmed(from: 75 << 20, to: Self.load(52, 5), nowMs: 21_000)
        #expect(!trims.due(Self.load(52, 5), nowMs: 90_000))
        #expect(!trims.due(Self.load(52, 5), nowMs: 95_000))
    }

    @Test func onceAMinuteAtMost() {
        let trims = Trims()
        var seconds: [Int64] = []
        for second in Int64(0)...300 {
            // In six of every seven seconds little is in use.
            let load = Self.load(100, second % 7 == 0 ? 80 : 0)
            guard trims.due(load, nowMs: second * 1_000) else { continue }
            seconds.append(second)
            trims.schedule.trimmed(from: 100 << 20, to: load, nowMs: second * 1_000)
        }
        #expect(seconds.count == 5 && zip(seconds, seconds.dropFirst()).allSatisfy { $1 - $0 >= 60 }, "\(seconds)")
    }

    @Test func whenManyConnectionsHaveGone() {
        let trims = Trims()
        #expect(!trims.due(Self.load(60, 0, 150), nowMs: 0))
        for second in Int64(1)..<20 { #expect(!trims.due(Self.load(60, 0, 51), nowMs: second * 1_000)) }
        #expect(!trims.due(Self.load(60, 0, 50), nowMs: 20_000))
        #expect(trims.due(Self.load(60, 0, 50), nowMs: 25_000))
    }

    /// Nobody looked while they were there.
    @Test func whenABurstHasComeAndGone() {
        let trims = Trims()
        #expect(!trims.due(Self.load(60, 0, 1), nowMs: 0))
        trims.schedule.sawConnections(101)
        #expect(!trims.due(Self.load(60, 0, 1), nowMs: 1_000))
        #expect(trims.due(Self.load(60, 0, 1), nowMs: 6_000))
    }

    /// Memory in use cannot be given back: after each trim without effect, the next one waits longer.
    @Test func growthThatStays() {
        let trims = Trims()
        #expect(!trims.due(Self.load(50), nowMs: 0))
        var minutes: [Int64] = []
        for minute in Int64(1)...240 {
            let load = Self.load(50 + Int(minute) * 40)
            _ = trims.due(load, nowMs: minute * 60_000)
            guard trims.due(load, nowMs: minute * 60_000 + 5_000) else { continue }
            minutes.append(minute)
            trims.schedule.trimmed(from: load.resident, to: load, nowMs: minute * 60_000)
        }
        #expect(minutes == [1, 3, 7, 15, 31, 63, 123, 183])
        // Freed memory is still given back.
        #expect(!trims.due(Self.load(9_000, 30), nowMs: 241 * 60_000))
        #expect(!trims.due(Self.load(9_000, 0), nowMs: 242 * 60_000))
        #expect(trims.due(Self.load(9_000, 0), nowMs: 242 * 60_000 + 5_000))
    }
}
