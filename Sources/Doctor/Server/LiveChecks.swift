import CommandSupport
import LinkTransport
import ServerConfiguration
import Support

/// All checks of a running server. They leave nothing behind.
struct LiveChecks: Sendable {
    let api: APIClient
    let http: DoctorHTTP
    /// This machine's settings, if the server runs on this machine.
    let local: LocalSubject?

    func run(_ report: inout DoctorReport) async throws {
        report.progress("asking \(self.api.server)")
        let server = ServerChecks(api: self.api, http: self.http)
        try report.add(try await server.health())
        for check in self.tls() {
            report.progress(check.name)
            try report.add(await check.run())
        }
        let rights = await TokenRights.find(self.api)
        try report.add([rights.result])
        guard rights.mayMakeRooms else { return }
        if rights.mayOperate {
            try report.add([await server.counters(), await WebhookCheck(api: self.api).targets()])
        }
        report.progress("pushing, playing, recording and talking; about five seconds")
        try report.add(await self.stream(rights))
    }

    private func tls() -> [TLSCheck] {
        guard let local else {
            let server = self.api.server
            guard server.isTLS else { return [] }
            return [TLSCheck(name: "TLS", address: HostPort(host: server.host, port: server.port), host: server.host)]
        }
        let host = CertificateChecks.hosts(local.config).first
        return [("RTMPS", local.address(.rtmps)), ("HTTPS", local.address(.https))].compactMap { name, address in
            guard let address, address.port != 0 else { return nil }
            return TLSCheck(name: name, address: address.reachable, host: host)
        }
    }

    // MARK: The stream

    private func stream(_ rights: TokenRights) async -> [DoctorResult] {
        let id = DoctorRoom.newID()
        var results: [DoctorResult] = []
        var webhook: WebhookCheck.Target?
        let hooks = WebhookCheck(api: self.api)
        if rights == .admin {
            switch await hooks.open(room: id) {
            case .target(let target): webhook = target
            case .result(let result): results.append(result)
            }
        }
        do {
            let room = try await DoctorRoom.make(id, self.api, rights)
            results += await self.inRoom(room, rights)
            if let webhook { results.append(await hooks.verdict(webhook, room: id)) }
            await room.remove()
        } catch {
            let words = MediaChecks.words(error)
            let isScoped = (error as? CommandFailure)?.status == .unauthorised
            results.append(
                isScoped
                    ? .skip("push", "the token may not make a room \(id): \(words)", "use a token without limits to apps or rooms")
                    : .fail("push", "no room could be made: \(words)", PlayChecks.advice(words)))
        }
        if let webhook { await hooks.close(webhook) }
        return results
    }

    private func inRoom(_ room: DoctorRoom, _ rights: TokenRights) async -> [DoctorResult] {
        let clip = DoctorClip()
        let publisher: DoctorPublisher
        do { publisher = try DoctorPublisher(clip, to: room.pushURL) } catch {
            return [.fail("push", "the URL that the server hands out cannot be used: \(error)", "correct urls.rtmp")]
        }
        defer { publisher.end() }
        if let why = await publisher.begin() { return [.fail("push", why, PlayChecks.advice(why))] }
        let pushing = Task { await publisher.run() }
        let media = MediaChecks(room: room, http: self.http, clip: clip)
        let refused = rights.mayOperate ? await media.startRecording() : nil
        var results = await self.plays(room, clip)
        async let talk = media.talk()
        async let snapshot = media.snapshot()
        results += [await snapshot, await talk]
        if rights.mayOperate {
            if let refused { results.append(refused) } else { results.append(await media.finishRecording()) }
        }
        pushing.cancel()
        let ended = await pushing.value
        let sent = publisher.task.status.framesOut
        let push: DoctorResult =
            ended.map { .fail("push", "the server ended it: \($0)", PlayChecks.advice($0)) } ?? .pass("push", "\(sent) messages taken")
        return [push] + results
    }

    /// Plays over all protocols at once, so that several faults together cost one time limit.
    private func plays(_ room: DoctorRoom, _ clip: DoctorClip) async -> [DoctorResult] {
        let plays = PlayChecks(clip: clip, http: self.http)
        let urls = room.play
        func url(_ name: String) -> String { urls[name].string ?? "" }
        var runs: [@Sendable () async -> [DoctorResult]] = [
            { [rtmp = url("rtmp")] in [await plays.rtmp("play RTMP", rtmp)] },
            { [flv = url("flv")] in [await plays.flv("play HTTP-FLV", flv)] },
            { [flv = url("flv")] in [await plays.webSocketFLV("play WebSocket-FLV", flv)] },
            { [mp4 = url("mp4")] in [await plays.mp4("play fMP4", mp4)] },
            { [mp4 = url("mp4")] in [await plays.webSocketMP4("play WebSocket-fMP4", mp4)] },
            { [http = self.http, hls = url("hls")] in await HLSCheck(clip: clip, http: http).run("play HLS", hls) },
        ]
        if let whep = urls["whep"].string {
            runs.append { [http = self.http] in [await WHEPCheck(clip: clip, http: http).run("play WebRTC", whep)] }
        }
        if let rtmps = urls["rtmps"].string {
            let file = self.local?.config.rtmps.certificate
            runs.append { [await self.overTLS(plays, rtmps, file)] }
        }
        if let address = self.local?.address(.https), address.port != 0 {
            let (flv, hls) = (Self.moved(url("flv"), to: address.reachable), Self.moved(url("hls"), to: address.reachable))
            runs.append { [await plays.flv("play HTTPS-FLV", flv)] }
            runs.append { [await plays.webSocketFLV("play WSS-FLV", flv)] }
            runs.append { [http = self.http] in await HLSCheck(clip: clip, http: http).run("play HLS over TLS", hls) }
        }
        let ordered = await withTaskGroup(of: (Int, [DoctorResult]).self) { group in
            for (index, run) in runs.enumerated() { group.addTask { (index, await Self.limited(run)) } }
            return await group.reduce(into: []) { $0.append($1) }
        }
        return ordered.sorted { $0.0 < $1.0 }.flatMap(\.1)
    }

    /// Limits the time of a check that may not end by itself.
    private static func limited(_ run: @escaping @Sendable () async -> [DoctorResult]) async -> [DoctorResult] {
        await withTaskGroup(of: Void.self, returning: [DoctorResult].self) { group in
            let work = Task { await run() }
            group.addTask {
                try? await Task.sleep(for: .seconds(PlayChecks.limit + 2))
                work.cancel()
            }
            let results = await withTaskCancellationHandler {
                await work.value
            } onCancel: {
                work.cancel()
            }
            group.cancelAll()
            return results
        }
    }

    /// Plays over RTMPS. Skips a certificate for another name: the URL holds this machine's own address, which the certificate need not cover.
    private func overTLS(_ plays: PlayChecks, _ url: String, _ file: String?) async -> DoctorResult {
        let result = await plays.rtmp("play RTMPS", url, caFile: file)
        guard result.status == .fail, let local = self.local, local.config.urls.rtmps == nil, result.measured.contains("TLS") else {
            return result
        }
        return .skip(
            result.name, "its certificate is not for \(ServerAddress(argument: "http" + url.dropFirst(5))?.host ?? "this machine")",
            "set urls.rtmps to the name in the certificate; the ports themselves were tried")
    }

    /// The same path over TLS at this address.
    static func moved(_ url: String, to address: HostPort) -> String {
        guard let start = url.firstRange(of: "://") else { return url }
        return "https://\(address)\(url[start.upperBound...].drop { $0 != "/" })"
    }
}
