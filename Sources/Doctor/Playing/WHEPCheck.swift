import CommandSupport
import DTLSSRTP
import NIOCore
import NIOHTTP1
import Support
import WebRTC

/// Plays the doctor's stream by WebRTC, with a client of its own: whether the UDP port is within reach, and whether what was pushed comes.
struct WHEPCheck: Sendable {
    let clip: DoctorClip
    let http: DoctorHTTP

    private static let enoughPictures = 22
    /// Packets of 20 ms.
    private static let enoughSound = 90
    private static let mostAddresses = 4
    /// Seconds in which an address answers.
    private static let answerSeconds: Int64 = 3
    private static let unreachable =
        "open the UDP port in the firewall, or set webrtc.addresses to the address at which clients reach it (docs/webrtc.md)"

    func run(_ name: String, _ url: String) async -> DoctorResult {
        let client: WatchingClient
        do throws(DTLSError) { client = try WatchingClient() } catch {
            return .fail(name, "\(error)", "is libssl whole? See the package libssl3")
        }
        let answer: DoctorHTTP.Answer
        do {
            answer = try await self.http.send(.POST, url, type: "application/sdp", body: client.offer)
        } catch {
            return .fail(name, "\(DoctorHTTP.words(error)) (\(DoctorHTTP.origin(url)))", PlayChecks.advice(nil))
        }
        guard answer.status == 201 else { return .fail(name, answer.refusal, Self.advice(answer.refusal)) }
        let result = await self.play(name, client, String(buffer: answer.body))
        if let session = answer.headers.first(name: "Location") { _ = try? await self.http.send(.DELETE, session) }
        return result
    }

    private static func advice(_ why: String) -> String {
        why.contains("webrtc.addresses") ? self.unreachable : PlayChecks.advice(why)
    }

    /// Tries the addresses of the answer in their order, as a browser tries them all at once.
    private func play(_ name: String, _ client: WatchingClient, _ answer: String) async -> DoctorResult {
        let candidates: [SessionOffer.Candidate]
        do throws(SessionDescriptionError) {
            candidates = try client.read(answer: answer)
        } catch {
            return .fail(name, "the answer cannot be read: \(error)", PlayChecks.advice(nil))
        }
        guard !candidates.isEmpty else { return .fail(name, "the answer names no address", Self.unreachable) }
        var silent: [String] = []
        let udp = candidates.filter { !$0.isStream }.prefix(Self.mostAddresses)
        for candidate in udp + candidates.filter(\.isStream).prefix(Self.mostAddresses) {
            let place = HostPort(host: candidate.address, port: candidate.port).description
            let socket: WatchingSocket
            do {
                socket = try await WatchingSocket.open(to: candidate)
            } catch {
                silent.append("\(place) (\(error))")
                continue
            }
            var judge = Judge(self.clip)
            await socket.run(client, forSeconds: Self.answerSeconds) { _ in client.wasAnswered }
            if client.wasAnswered {
                await socket.run(client, forSeconds: PlayChecks.limit) { media in
                    for each in media { judge.receive(each) }
                    return judge.isDone || judge.problem != nil
                }
            }
            await socket.close()
            let way = candidate.isStream ? "TCP" : "UDP"
            if client.wasAnswered {
                let result = self.verdict(name, client, judge, "by \(way) from \(place)")
                guard candidate.isStream, judge.isDone, !silent.isEmpty else { return result }
                let what = "it plays by TCP from \(place), but nothing comes back from \(silent.joined(separator: ", "))"
                return .warn(name, what, Self.unreachable)
            }
            silent.append("\(place) by \(way)")
        }
        return .fail(name, "nothing comes back from \(silent.joined(separator: ", "))", Self.unreachable)
    }

    private func verdict(_ name: String, _ client: WatchingClient, _ judge: Judge, _ place: String) -> DoctorResult {
        if judge.isDone { return .pass(name, "\(judge.pictures) pictures, \(judge.sound) packets of sound, \(place)") }
        if let problem = client.problem ?? judge.problem { return .fail(name, problem, PlayChecks.advice(nil)) }
        guard client.isConnected else { return .fail(name, "no DTLS connection \(place)", PlayChecks.advice(nil)) }
        return .fail(
            name, "\(judge.pictures) pictures and \(judge.sound) packets of sound in \(PlayChecks.limit) s", PlayChecks.advice(nil))
    }

    /// Judges what comes back. A plain value.
    private struct Judge {
        private let slices: Set<[UInt8]>
        private(set) var pictures = 0
        private(set) var sound = 0
        private(set) var problem: String?

        var isDone: Bool { self.pictures >= WHEPCheck.enoughPictures && self.sound >= WHEPCheck.enoughSound }

        init(_ clip: DoctorClip) {
            self.slices = Set(clip.pictures.flatMap { Self.units($0) })
        }

        /// The units of a message, behind their lengths (FLV 10.1 §E.4.3.1, ISO/IEC 14496-15 §5.3.4.2).
        private static func units(_ message: ByteBuffer) -> [[UInt8]] {
            var rest = message
            rest.moveReaderIndex(forwardBy: min(5, rest.readableBytes))
            var units: [[UInt8]] = []
            while let length = rest.readInteger(as: UInt32.self), let unit = rest.readBytes(length: Int(length)) { units.append(unit) }
            return units
        }

        mutating func receive(_ media: WatchingClient.Media) {
            switch media {
            case .sound: self.sound += 1
            case .unit(let unit):
                guard let type = unit.first.map({ $0 & 0x1F }), (1...5).contains(type) else { return }
                guard self.slices.contains(unit) else {
                    self.problem = "a picture of \(unit.count) bytes that was not pushed"
                    return
                }
                if self.pictures == 0, type != 5 { self.problem = "the first picture is no keyframe" }
                self.pictures += 1
            }
        }
    }
}
