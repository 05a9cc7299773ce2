import Foundation
import ServerTestSupport
import TestSupport
import Testing

/// The `earshot` command as a process: what it prints, how it ends.
@Suite struct ProcessClientsTests {
    @Test func serveEndsOrderlyWithClientsOn() async throws {
        let source = try await Fixture.flv(video: Fixture.baseline, audio: Fixture.aac, seconds: 8)
        try await Fixture.withDirectory { directory in
            try await EarshotProcess.serve(data: directory) { earshot in
                #expect(!earshot.rtmp.hasSuffix(":0") && !earshot.http.hasSuffix(":0"))
                #expect(try await HTTPAnswer.get("\(earshot.http)/healthz").text == "ok\n")
                let url = "\(earshot.rtmp)/live/cam1"
                let player = try ClientProcess(Probe.packets(url))
                let dump = try ClientProcess(["rtmpdump", "-r", url, "--live", "-o", "/dev/null"])
                let push = try ClientProcess(FFmpeg.pushForEver(source, to: url))
                defer { for client in [player, dump, push] { client.send(SIGKILL) } }
                try await eventually("play and publish") {
                    let stream = try await HTTPAnswer.get("\(earshot.http)/api/v1/streams", token: earshot.token).json()["data"]["list"][0]
                    return stream["viewers"].int == 2 && stream["video"]["keyframeIntervalMs"].int != nil
                }
                let asked = StallMeter.machine.start()
                earshot.process.send(SIGTERM)
                let ended = try await earshot.process.outcome()
                let took = ContinuousClock.now - asked
                let stalled = try await StallMeter.machine.stalled(from: asked, to: asked + took)
                // As long as a service manager is told that it may take.
                #expect(took - stalled * 4 < .seconds(10), "\(took), and \(stalled) of it the machine's")
                #expect(ended.status == 0, "\(ended.errors)")
                #expect(ended.errors.contains("reason=server_shutdown"))
                // The server announced its end, so each client ends by itself: the players as at a stream's end.
                let played = try await player.outcome()
                #expect(played.status == 0, "\(played.errors)")
                #expect(PacketList(csv: played.text).count > 20)
                _ = try await dump.outcome()
                #expect(try await push.outcome().status != 0)
            }
        }
    }

    /// Neither is a signal to end.
    @Test(arguments: [SIGUSR1, SIGALRM]) func signalsWithoutAMeaningAreIgnored(_ signal: Int32) async throws {
        try await Fixture.withDirectory { directory in
            try await EarshotProcess.serve(data: directory) { earshot in
                earshot.process.send(signal)
                #expect(try await HTTPAnswer.get("\(earshot.http)/readyz").status == 200)
                earshot.process.send(SIGTERM)
                let ended = try await earshot.process.outcome()
                #expect(ended.status == 0, "\(ended.errors)")
            }
        }
    }

    @Test(arguments: [SIGTERM, SIGINT, SIGQUIT]) func serveEndsAtOnceWithoutClients(_ signal: Int32) async throws {
        try await Fixture.withDirectory { directory in
            try await EarshotProcess.serve(data: directory) { earshot in
                earshot.process.send(signal)
                let ended = try await earshot.process.outcome()
                #expect(ended.status == 0, "\(ended.errors)")
            }
        }
    }

    @Test func aPortInUseIsSaid() async throws {
        try await Fixture.withDirectory { directory in
            try await EarshotProcess.serve(data: directory) { earshot in
                let data = directory.appendingPathComponent("second").path
                let taken = earshot.rtmp.replacingOccurrences(of: "rtmp://", with: "")
                let second = try await EarshotProcess.command(
                    ["serve", "--rtmp", taken, "--http", "127.0.0.1:0", "--data", data])
                #expect(second.status != 0)
                #expect(second.errors.contains("cannot listen for rtmp on \(taken)"), "\(second.errors)")
                #expect(second.errors.contains("in use"))
                #expect(!second.text.contains("earshot is running"))
                let web = earshot.http.replacingOccurrences(of: "http://", with: "")
                let third = try await EarshotProcess.command(
                    ["serve", "--rtmp", "127.0.0.1:0", "--http", web, "--data", data])
                #expect(third.status != 0)
                #expect(third.errors.contains("cannot listen for http on \(web)"), "\(third.errors)")
                #expect(third.errors.contains("in use"), "\(third.errors)")
            }
        }
    }

    @Test func configCheckListsEveryMistake() async throws {
        try await Fixture.withDirectory { directory in
            let file = directory.appendingPathComponent("bad.yaml").path
            try """
            rtmp:
              listen: nonsense
            relay:
              maxBehind: 5 parsecs
              skipBehnd: 1s
            limits:
              connections: -1
            """.write(toFile: file, atomically: true, encoding: .utf8)
            let bad = try await EarshotProcess.command(["config", "check", "--config", file])
            #expect(bad.status != 0)
            for path in ["rtmp.listen", "relay.maxBehind", "skipBehnd", "limits.connections"] {
                #expect(bad.errors.contains(path), "\(path) in \(bad.errors)")
            }
            #expect(bad.errors.contains("relay.skipBehind"), "no suggestion in \(bad.errors)")
            try "relay:\n  maxBehind: 3s\n".write(toFile: file, atomically: true, encoding: .utf8)
            let good = try await EarshotProcess.command(["config", "check", "--config", file])
            #expect(good.status == 0, "\(good.errors)")
            #expect(good.text.contains("valid"))
            let missing = try await EarshotProcess.command(["config", "check", "--config", "\(file).missing"])
            #expect(missing.status != 0)
            #expect(missing.errors.contains("bad.yaml.missing"), "\(missing.errors)")
        }
    }

    /// The printed configuration can be read back.
    @Test func configPrintIsAConfiguration() async throws {
        try await Fixture.withDirectory { directory in
            let file = directory.appendingPathComponent("print.yaml").path
            let printed = try await EarshotProcess.command(["config", "print", "--rtmp", "127.0.0.1:1999"])
            #expect(printed.status == 0, "\(printed.errors)")
            #expect(printed.text.contains("127.0.0.1:1999"))
            #expect(printed.text.contains("maxBehind"))
            try printed.text.write(toFile: file, atomically: true, encoding: .utf8)
            let checked = try await EarshotProcess.command(["config", "check", "--config", file])
            #expect(checked.status == 0, "\(checked.errors)")
        }
    }
}
