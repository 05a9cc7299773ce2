import LibC
import Synchronization

/// The synthetic cameras of all rooms. They send on an even real-time schedule from a thread of their own.
///
/// `@unchecked Sendable`: the caller touches `connections` before `start` and after `stop` has joined the thread; the thread does in
/// between. Everything else is immutable or in the mutex.
final class Publisher: @unchecked Sendable {
    let shape: StreamShape
    private var connections: [PublisherConnection]
    private var thread: pthread_t?
    private let shared = Mutex(Shared())

    private struct Shared {
        var isStopping = false
        var failure: LoadError?
        /// The worst delay of a frame behind its schedule, in nanoseconds.
        var worstDelayNs: UInt64 = 0
    }

    /// Connects one camera per room; returns when all are accepted.
    init(target: Target, names: [String], shape: StreamShape) throws(LoadError) {
        self.shape = shape
        self.connections = []
        // Created at its first use, which takes longer than a frame's interval.
        _ = Pattern.fill(sequence: 0, 0..<1)
        do throws(LoadError) {
            for (room, name) in names.enumerated() {
                self.connections.append(try PublisherConnection(target: target, name: name, room: room, shape: shape))
            }
        } catch {
            self.close()
            throw error
        }
    }

    func start() throws(LoadError) {
        var thread = pthread_t()
        let context = Unmanaged.passRetained(self).toOpaque()
        let code = pthread_create(
            &thread, nil,
            { context in
                guard let context else { return nil }
                Unmanaged<Publisher>.fromOpaque(context).takeRetainedValue().run()
                return nil
            }, context)
        guard code == 0 else {
            Unmanaged<Publisher>.fromOpaque(context).release()
            throw .system("pthread_create", code)
        }
        self.thread = thread
    }

    /// Stops sending and keeps the connections, so that frames on their way still arrive.
    func stop() throws(LoadError) {
        guard let thread = self.thread else { return }
        self.shared.withLock { $0.isStopping = true }
        pthread_join(thread, nil)
        self.thread = nil
        if let failure = self.shared.withLock({ $0.failure }) { throw failure }
    }

    func close() {
        for connection in self.connections { connection.close() }
        self.connections = []
    }

    var worstDelayMs: Double { Double(self.shared.withLock { $0.worstDelayNs }) / 1e6 }

    /// Frames sent to a room. Valid after `stop`.
    func sent(room: Int) -> (video: UInt64, audio: UInt64) {
        (self.connections[room].videoSequence, self.connections[room].audioSequence)
    }

    // MARK: Thread

    private func run() {
        do throws(LoadError) {
            try self.sendOnSchedule()
        } catch {
            self.shared.withLock { $0.failure = error }
        }
    }

    /// Counted over all rooms, frame `n` belongs to room `n % rooms`. So the rooms are evenly interleaved.
    private func sendOnSchedule() throws(LoadError) {
        let rooms = self.connections.count
        let start = Clock.now()
        let videoInterval = 1e9 / Double(self.shape.framesPerSecond * rooms)
        let audioFrameNs = 1e9 * Double(StreamShape.audioSamplesPerFrame) / Double(StreamShape.audioSampleRate)
        let audioInterval = audioFrameNs / Double(rooms)
        var video = 0
        var audio = 0
        while !self.shared.withLock({ $0.isStopping }) {
            let videoDue = self.shape.videoKbps > 0 ? start + UInt64(Double(video) * videoInterval) : UInt64.max
            // Half an interval off the video, so that the two coincide no more often than they must.
            let audioDue = self.shape.audioKbps > 0 ? start + UInt64((Double(audio) + 0.5) * audioInterval) : UInt64.max
            let due = min(videoDue, audioDue)
            Clock.sleep(untilNs: due)
            if videoDue <= audioDue {
                let (frame, room) = video.quotientAndRemainder(dividingBy: rooms)
                // The rooms' keyframes are spread over the GOP; each room starts with one.
                let isKeyframe = frame == 0 || (frame + room * self.shape.gop / rooms) % self.shape.gop == 0
                let timestamp = UInt32(truncatingIfNeeded: frame * 1000 / self.shape.framesPerSecond)
                try self.connections[room].sendVideo(self.shape, timestamp: timestamp, isKeyframe: isKeyframe)
                try self.connections[room].answer()
                video += 1
            } else {
                let (frame, room) = audio.quotientAndRemainder(dividingBy: rooms)
                let timestamp = UInt32(truncatingIfNeeded: Int(Double(frame) * audioFrameNs / 1e6))
                try self.connections[room].sendAudio(self.shape, timestamp: timestamp)
                if self.shape.videoKbps == 0 { try self.connections[room].answer() }
                audio += 1
            }
            let delay = Clock.now() - due
            self.shared.withLock { $0.worstDelayNs = max($0.worstDelayNs, delay) }
        }
    }
}
