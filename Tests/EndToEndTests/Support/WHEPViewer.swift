import Doctor
import Foundation
import NIOCore
import ServerTestSupport
import Support
import Synchronization
import TestSupport
import WebRTC

/// A viewer by WebRTC, by the project's own client: from its offer until it is closed. Its pictures' and sounds' arrivals are kept.
final class WHEPViewer: Sendable {
    private struct Seen {
        var units: [ContinuousClock.Instant] = []
        var sounds = 0
        var problem: String?
    }

    private let seen = Mutex(Seen())
    private let isClosed = Mutex(false)
    private let socket: WatchingSocket
    /// The address of its session.
    let session: String

    private init(session: String, _ socket: WatchingSocket) {
        self.session = session
        self.socket = socket
    }

    /// Offers to `url`, "http://127.0.0.1:8080/whep/live/cam1", and begins to play. `byTCP`: as in a network that lets no UDP through.
    static func open(_ url: String, byTCP: Bool = false) async throws -> WHEPViewer {
        let client = try WatchingClient()
        let answer = try await HTTPAnswer.call("POST", url, body: Data(client.offer.utf8), headers: ["Content-Type": "application/sdp"])
        guard answer.status == 201, let session = answer.headers["location"] else {
            throw TimedOut(description: "the offer was answered with \(answer.status): \(answer.text)")
        }
        let candidate = try client.read(answer: answer.text).first { $0.isStream == byTCP }.orThrow()
        let socket = try await WatchingSocket.open(to: candidate)
        let viewer = WHEPViewer(session: session, socket)
        Task {
            await socket.run(client, forSeconds: 600) { media in
                viewer.seen.withLock { seen in
                    for each in media {
                        if case .sound = each { seen.sounds += 1 } else { seen.units.append(.now) }
                    }
                }
                return viewer.isClosed.withLock { $0 }
            }
            viewer.seen.withLock { $0.problem = client.problem }
            await socket.close()
        }
        return viewer
    }

    /// When each unit of H.264 came.
    var units: [ContinuousClock.Instant] { self.seen.withLock { $0.units } }
    var sounds: Int { self.seen.withLock { $0.sounds } }
    /// Why it ended by itself.
    var problem: String? { self.seen.withLock { $0.problem } }

    /// The longest time without a picture since `start`.
    func longestGap(since start: ContinuousClock.Instant) -> Duration {
        let times = [start] + self.units.filter { $0 > start } + [.now]
        return zip(times.dropFirst(), times).map { $0 - $1 }.max() ?? .zero
    }

    /// Stops reading, as behind a network that stands still, or goes on.
    func hold(_ holds: Bool) { self.socket.hold(holds) }

    func close() { self.isClosed.withLock { $0 = true } }
}
