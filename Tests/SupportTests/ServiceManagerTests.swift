import TestSupport
import Testing

@testable import Support

@Suite struct ServiceManagerTests {
    private static func manager(_ values: [String: String], processID: Int32 = 7) -> ServiceManager? {
        ServiceManager(environment: { values[$0] }, processID: processID)
    }

    /// Every state over a real socket: one datagram for all that is sent at once.
    @Test func states() throws {
        let socket = try ManagerSocket()
        let manager = try #require(Self.manager(["NOTIFY_SOCKET": socket.name]))
        #expect(manager.send([.ready, .status("2 viewers\nREADY=0")]))
        #expect(manager.send([.alive]))
        #expect(manager.send([.reloading(monotonicUs: 17)]))
        #expect(manager.send([.stopping(withinMs: 4_800)]))
        let expected = [
            "READY=1\nSTATUS=2 viewers READY=0", "WATCHDOG=1", "RELOADING=1\nMONOTONIC_USEC=17",
            "STOPPING=1\nEXTEND_TIMEOUT_USEC=4800000",
        ]
        #expect(socket.datagrams == expected)
    }

    /// A line for people cannot become another state, and is bounded.
    @Test func statusIsOneLine() {
        #expect(ServiceState.status("a\r\n\u{0}b").text == "STATUS=a   b")
        #expect(ServiceState.status(String(repeating: "é", count: 5_000)).text.count == 207)
        #expect(ServiceState.stopping(withinMs: -1).text == "STOPPING=1\nEXTEND_TIMEOUT_USEC=0")
        #expect(ServiceState.stopping(withinMs: .max).text == "STOPPING=1\nEXTEND_TIMEOUT_USEC=31536000000000")
    }

    @Test func reloadsBeginNow() throws {
        guard case .reloading(let first) = ServiceState.reloadingNow, case .reloading(let second) = ServiceState.reloadingNow else {
            Issue.record("no time")
            return
        }
        #expect(first > 0 && second >= first && second - first < 10_000_000)
    }

    @Test func addresses() {
        #expect(ServiceManager.address("/run/notify") == Array("/run/notify".utf8) + [0])
        #expect(ServiceManager.address("@name") == [0] + Array("name".utf8))
        #expect(ServiceManager.address("/" + String(repeating: "x", count: 106))?.count == 108)
        for wrong in ["", "/", "@", "name", "vsock:2:1", "/" + String(repeating: "x", count: 107), String(repeating: "@", count: 5_000)] {
            #expect(ServiceManager.address(wrong) == nil, "\(wrong)")
            #expect(Self.manager(["NOTIFY_SOCKET": wrong]) == nil)
        }
        #expect(Self.manager([:]) == nil)
    }

    @Test(
        arguments: [
            ([:], nil), (["WATCHDOG_USEC": "60000000"], 60_000), (["WATCHDOG_USEC": "60000000", "WATCHDOG_PID": "7"], 60_000),
            (["WATCHDOG_USEC": "60000000", "WATCHDOG_PID": "8"], nil), (["WATCHDOG_USEC": "0"], nil), (["WATCHDOG_USEC": "-5"], nil),
            (["WATCHDOG_USEC": "one"], nil), (["WATCHDOG_USEC": "1"], 1),
            (["WATCHDOG_USEC": "18446744073709551615"], 18_446_744_073_709_551),
        ] as [([String: String], Int?)])
    func watchdog(_ values: [String: String], _ expected: Int?) throws {
        let manager = try #require(Self.manager(values.merging(["NOTIFY_SOCKET": "/nowhere/at/all"]) { first, _ in first }))
        #expect(manager.watchdogMs == expected)
        // Nobody listens there; nothing else happens.
        #expect(!manager.send([.ready]))
    }

    /// A manager that reads nothing cannot hold the server up.
    @Test func aFullQueueIsNoWait() throws {
        let socket = try ManagerSocket()
        let manager = try #require(Self.manager(["NOTIFY_SOCKET": socket.name]))
        var sent = 0
        while sent < 100_000, manager.send([.alive]) { sent += 1 }
        #expect(sent > 0 && sent < 100_000)
        #expect(socket.datagrams.count == sent)
        #expect(manager.send([.alive]))
    }
}
