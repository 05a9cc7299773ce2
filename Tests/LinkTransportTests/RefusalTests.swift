import Foundation
import Media
import NIOCore
import RTMP
import Support
import TestSupport
import Testing

@testable import LinkTransport

/// Servers that refuse, redirect, stay silent or send nonsense. Each fault is named clearly, and none does harm.
@Suite struct RefusalTests {
    private static var once: LinkOptions {
        var options = LinkOptions.forTests
        options.reconnect.maxAttempts = 1
        return options
    }

    /// The error of a link that is tried once.
    static func failure(_ url: String, pushes: Bool = false, _ options: LinkOptions? = nil) async throws -> LinkError {
        let body: (LinkClient, PullRecord) async throws -> LinkError = { task, _ in
            try await eventually("failure") { if case .failed = task.state { true } else { false } }
            return try task.status.lastError.orThrow()
        }
        let used = options ?? Self.once
        return pushes ? try await pushing(url, used, body) : try await pulling(url, used, body)
    }

    @Test func nobodyListens() async throws {
        let port = try await FreePort.reserve()
        let error = try await Self.failure("rtmp://127.0.0.1:\(port)/live/cam1")
        #expect(error == .connect(origin: "rtmp://127.0.0.1:\(port)", why: "Connection refused"))
    }

    @Test func nameWithoutAddress() async throws {
        var options = Self.once
        options.lookup = { _ in .failure(LookupFailure(why: "Name or service not known")) }
        let error = try await Self.failure("rtmp://nowhere.test/live/cam1", options)
        #expect(error == .resolve(host: "nowhere.test", why: "Name or service not known"))
    }

    @Test func lookupThatHangs() async throws {
        var options = Self.once
        options.connectTimeoutMs = 200
        let end = DispatchSemaphore(value: 0)
        defer { end.signal() }
        options.lookup = { _ in
            end.wait()
            return .success([[127, 0, 0, 1]])
        }
        let error = try await Self.failure("rtmp://slow.test/live/cam1", options)
        #expect(error == .resolve(host: "slow.test", why: "the name servers took too long"))
    }

    @Test func stoppedWhileTheLookupHangs() async throws {
        var options = LinkOptions.forTests
        let (asked, end) = (SharedList<String>(), DispatchSemaphore(value: 0))
        defer { end.signal() }
        options.lookup = { host in
            asked.append(host)
            end.wait()
            return .success([[127, 0, 0, 1]])
        }
        // The lookup ends only with the test, after the link.
        try await pulling("rtmp://slow.test/live/cam1", options) { task, _ in
            try await eventually("the lookup") { !asked.all.isEmpty }
            task.stop()
            try await eventually("the end") { task.state == .stopped }
        }
    }

    /// The address to connect to decides, whatever the name.
    @Test(arguments: ["rtmp://127.0.0.1:1/live/cam1", "rtmp://inside.test:1/live/cam1", "rtmp://[::1]:1/live/cam1"])
    func forbiddenAddress(_ url: String) async throws {
        var options = LinkOptions { address in address.first == 127 || address.last == 1 ? "loopback" : nil }
        options.lookup = { _ in .success([[127, 0, 0, 1]]) }
        let used = options
        try await pulling(url, used) { task, _ in
            try await eventually("failure") { if case .failed(_, permanent: true) = task.state { true } else { false } }
            let error = try task.status.lastError.orThrow()
            guard case .forbidden(_, let address, "loopback") = error else {
                Issue.record("\(error)")
                return
            }
            #expect(address == "127.0.0.1" || address == "::1")
            #expect(task.status.attempts == 1)
        }
    }

    /// The first address refuses, the second is forbidden and skipped, the third serves.
    @Test func nextAddressIsTried() async throws {
        try await ScriptedRTMP.run(host: "::1") { server in
            try await ScriptedRTMP.run { _ in
                var options = Self.once
                options.objection = { $0 == [127, 0, 0, 1] ? "loopback" : nil }
                options.lookup = { _ in
                    .success([[127, 0, 0, 9], [127, 0, 0, 1], [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]])
                }
                let used = options
                try await pushing("rtmp://both.test:\(server.port)/live/cam1", used) { task, _ in
                    try await eventually("consent") { task.state == .running }
                    #expect(task.status.remoteAddress == "[::1]:\(server.port)")
                }
            }
        }
    }

    @Test func ipv6Loopback() async throws {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 60)
        try await Nginx.run { nginx in
            let url = "rtmp://[::1]:\(nginx.port)/live/cam1"
            try await ClientProcess.during(FFmpeg.push(source, to: "\(nginx.url)/live/cam1")) { _ in
                try await pulling(url) { task, record in
                    try await eventually("frames") { record.frames.count > 10 }
                    #expect(task.status.remoteAddress == "[::1]:\(nginx.port)")
                }
            }
        }
    }

    // MARK: The server's answers

    @Test func refusedConnect() async throws {
        var script = ScriptedRTMP.Script()
        script.answer = { command, _ in
            guard command.name == "connect" else { return nil }
            return ScriptedRTMP.error(
                command, Status(StatusCode.connectRejected, level: .error, "no app for cam1secret here").object())
        }
        try await ScriptedRTMP.run(script) { server in
            let error = try await Self.failure("rtmp://127.0.0.1:\(server.port)/live/cam1secret", pushes: true)
            #expect(error == .refused(command: "connect", code: StatusCode.connectRejected, description: "no app for *** here"))
        }
    }

    /// librtmp's own code would answer these by connecting again, or by reading missing data.
    @Test(arguments: [
        "[ AccessManager.Reject ] : [ code=403 need auth; authmod=adobe ] : ",
        "[ AccessManager.Reject ] : [ authmod=adobe ] : ?reason=needauth&user=&salt=&challenge=&opaque=", "",
    ]) func demandsAuthorization(_ description: String) async throws {
        var script = ScriptedRTMP.Script()
        script.answer = { command, _ in
            guard command.name == "connect" else { return nil }
            return ScriptedRTMP.error(
                command, description.isEmpty ? .null : Status(StatusCode.connectRejected, level: .error, description).object())
        }
        try await ScriptedRTMP.run(script) { server in
            guard case .refused("connect", _, _) = try await Self.failure(server.url, pushes: true) else {
                Issue.record("not refused")
                return
            }
            #expect(server.connections == 1)
        }
    }

    @Test func redirected() async throws {
        var script = ScriptedRTMP.Script()
        script.answer = { command, _ in
            guard command.name == "connect" else { return nil }
            return ScriptedRTMP.error(
                command,
                [
                    "level": "error", "code": "NetConnection.Connect.Rejected", "description": "moved",
                    "ex": ["code": 302, "redirect": "rtmp://10.1.2.3:1936/live?key=hush"],
                ])
        }
        try await ScriptedRTMP.run(script) { server in
            let error = try await Self.failure("\(server.url)x", pushes: false)
            #expect(error == .redirected(to: "rtmp://10.1.2.3:1936"))
            #expect(error.isPermanent)
        }
    }

    @Test func aNameInUse() async throws {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 60)
        try await Nginx.run { nginx in
            let url = "\(nginx.url)/live/cam1"
            try await ClientProcess.during(FFmpeg.push(source, to: url)) { _ in
                try await pulling(url) { _, record in try await eventually("frames") { !record.frames.isEmpty } }
                let error = try await Self.failure(url, pushes: true)
                guard case .refused(_, StatusCode.publishBadName, _) = error else {
                    Issue.record("\(error)")
                    return
                }
                #expect(error.description.contains("Already publishing"), "\(error)")
            }
        }
    }

    /// nginx closes without an answer.
    @Test(arguments: [true, false]) func deniedByNginx(_ pushes: Bool) async throws {
        try await Nginx.run { nginx in
            let error = try await Self.failure("\(nginx.url)/closed/cam1", pushes: pushes)
            switch error {
            case .closed, .refused: break
            default: Issue.record("\(error)")
            }
            #expect(error.description.contains("key"), "\(error)")
        }
    }

    @Test func missingStream() async throws {
        var script = ScriptedRTMP.Script()
        script.answer = { command, _ in
            command.name == "play" ? [ScriptedRTMP.status(StatusCode.playStreamNotFound, level: .error, "cam1 is not here")] : nil
        }
        try await ScriptedRTMP.run(script) { server in
            let error = try await Self.failure(server.url)
            #expect(error == .notFound(description: "*** is not here"))
        }
    }

    @Test func unknownCallsMayBeRefused() async throws {
        var script = ScriptedRTMP.Script()
        script.answer = { command, _ in
            guard ["releaseStream", "FCPublish"].contains(command.name) else { return nil }
            return ScriptedRTMP.error(command, Status(StatusCode.callFailed, level: .error, "unknown").object())
        }
        try await ScriptedRTMP.run(script) { server in
            try await pushing(server.url) { task, _ in try await eventually("consent") { task.state == .running } }
            // A clean stop says goodbye.
            try await eventually("the goodbye") {
                server.commands.all.contains("FCUnpublish") && server.commands.all.contains("deleteStream")
            }
        }
    }

    // MARK: Silence

    /// The link gives up on what never arrives. The steps before it get more time where this machine was too slow for them.
    private static func expectSilence(_ server: ScriptedRTMP, pushes: Bool = false, waitingFor what: String) async throws {
        var error: LinkError?
        for ms in [500, 5_000, 60_000] {
            var options = Self.once
            options.handshakeTimeoutMs = ms
            error = try await Self.failure(server.url, pushes: pushes, options)
            if error == .silent(waitingFor: what, ms: ms) { return }
            guard case .silent = error else { break }
        }
        Issue.record("\(String(describing: error)) in place of \(what)")
    }

    @Test func acceptsAndNeverReads() async throws {
        var script = ScriptedRTMP.Script()
        script.isDeaf = true
        try await ScriptedRTMP.run(script) { try await Self.expectSilence($0, waitingFor: "the RTMP handshake") }
    }

    @Test func silentAfterTheHandshake() async throws {
        var script = ScriptedRTMP.Script()
        script.answer = { _, _ in [] }
        try await ScriptedRTMP.run(script) { try await Self.expectSilence($0, waitingFor: "the answer to connect") }
    }

    @Test func silentAfterPublish() async throws {
        var script = ScriptedRTMP.Script()
        script.answer = { command, _ in command.name == "publish" ? [] : nil }
        try await ScriptedRTMP.run(script) { try await Self.expectSilence($0, pushes: true, waitingFor: "the answer to publish") }
    }

    @Test func playsNothing() async throws {
        try await ScriptedRTMP.run { server in
            var options = Self.once
            options.silenceMs = 500
            let error = try await Self.failure(server.url, options)
            #expect(error == .noMedia(ms: 500))
        }
    }

    @Test func notAnRTMPServer() async throws {
        var script = ScriptedRTMP.Script()
        script.closesAfter = ["connect"]
        script.answer = { _, _ in [] }
        try await ScriptedRTMP.run(script) { server in
            guard case .closed = try await Self.failure(server.url) else {
                Issue.record("not closed")
                return
            }
        }
    }
}
