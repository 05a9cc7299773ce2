import CommandSupport
import LinkTransport
import Media
import NIOCore

/// Pushes the clip in real time, until its task is cancelled.
struct DoctorPublisher: Sendable {
    let clip: DoctorClip
    let task: LinkClient
    private let hasVideo: Bool

    /// Milliseconds between two batches of messages.
    private static let beatMs: Int64 = 20

    /// Throws when the URL cannot be used.
    init(_ clip: DoctorClip, to url: String, video: Bool = true) throws(LinkError) {
        self.clip = clip
        self.hasVideo = video
        self.task = LinkClient.push(try LinkURL(parsing: url), options: DoctorLink.options(), name: "doctor-push")
    }

    /// Connects. Returns the failure; nil when the server accepts the push.
    func begin() async -> String? {
        if self.hasVideo { self.offer(.video, 0, self.clip.videoHeader) }
        self.offer(.audio, 0, self.clip.audioHeader)
        self.task.start()
        return await DoctorLink.wait(for: self.task)
    }

    /// Sends until the task is cancelled; returns the reason if the push ended before that.
    func run() async -> String? {
        let start = ContinuousClock.now
        var sentMs: Int64 = 0
        while !Task.isCancelled {
            let nowMs = Int64((ContinuousClock.now - start) / .milliseconds(1))
            for (kind, ms, payload) in self.clip.messages(from: sentMs, to: nowMs, video: self.hasVideo) { self.offer(kind, ms, payload) }
            sentMs = max(sentMs, nowMs)
            if case .failed = self.task.state { return DoctorLink.reason(self.task) }
            try? await Task.sleep(for: .milliseconds(Self.beatMs))
        }
        return nil
    }

    func end() { self.task.stop() }

    private func offer(_ kind: Frame.Kind, _ ms: Int64, _ payload: ByteBuffer) {
        // The clip's messages are well formed; a test reads them all.
        guard let frame = try? Frame(kind: kind, timestamp: ms, payload: payload) else { return }
        self.task.offer(frame)
    }
}

/// Settings that the doctor's RTMP connections share.
enum DoctorLink {
    /// Milliseconds to connect and to be admitted.
    private static let patienceMs = 5_000

    static func options() -> LinkOptions {
        var options = LinkOptions { _ in nil }
        options.connectTimeoutMs = self.patienceMs
        options.handshakeTimeoutMs = self.patienceMs
        options.bufferMs = 100
        options.silenceMs = self.patienceMs
        options.reconnect.maxAttempts = 1
        return options
    }

    /// Waits until the link runs. Returns the failure; nil once it runs.
    static func wait(for task: LinkClient) async -> String? {
        let end = ContinuousClock.now + .milliseconds(2 * self.patienceMs)
        while task.state != .running {
            if case .failed = task.state { return self.reason(task) }
            guard ContinuousClock.now < end, !Task.isCancelled else { return "no answer in time" }
            try? await Task.sleep(for: .milliseconds(10))
        }
        return nil
    }

    static func reason(_ task: LinkClient) -> String {
        let text = task.status.lastError.map { "\($0)" } ?? "it ended"
        // The advice to check app and name is for people who typed them.
        return DisplayText.escaped(text.split(separator: "; check app").first.map(String.init) ?? text)
    }
}
