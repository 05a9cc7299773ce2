import Foundation
import Media
import NIOCore
import Synchronization
import TestSupport

@testable import LinkTransport

/// The events and states that a link reported, in order.
final class PullRecord: Sendable {
    private struct State {
        var frames: [Frame] = []
        var starts = 0
        var ends: [LinkError] = []
        var states: [LinkState] = []
    }
    private let state = Mutex(State())

    var frames: [Frame] { self.state.withLock { $0.frames } }
    /// Frames other than metadata and headers: as many as a file's packets, plus an end of sequence.
    var codedCount: Int { self.frames.count { $0.kind != .data && !$0.isSequenceHeader } }
    var starts: Int { self.state.withLock { $0.starts } }
    var ends: [LinkError] { self.state.withLock { $0.ends } }
    var states: [LinkState] { self.state.withLock { $0.states } }
    /// "connecting running waiting"
    var words: String { self.states.map(\.word).joined(separator: " ") }

    func note(_ event: PullEvent) {
        self.state.withLock { state in
            switch event {
            case .started: state.starts += 1
            case .frame(let frame): state.frames.append(frame)
            case .ended(let error): state.ends.append(error)
            }
        }
    }

    func note(_ new: LinkState) { self.state.withLock { $0.states.append(new) } }

    /// The frames as FLV tags, like those of a file.
    var tags: [FLVTag] {
        self.frames.map {
            FLVTag(kind: $0.kind, timestamp: UInt32(truncatingIfNeeded: $0.timestamp), payload: Array($0.payload.readableBytesView))
        }
    }
}

extension LinkOptions {
    /// Allows every address, loopback included. The limits are so high that a machine that stalls for seconds meets none; tests of limits
    /// set their own.
    static var forTests: LinkOptions {
        var options = LinkOptions { _ in nil }
        options.connectTimeoutMs = 60_000
        options.handshakeTimeoutMs = 60_000
        options.silenceMs = 60_000
        options.sendStallMs = 60_000
        options.queueMs = 60_000
        options.queueAudioMs = 120_000
        options.reconnect.firstMs = 100
        options.reconnect.maxMs = 400
        return options
    }
}

/// Runs a pulling link while the body runs.
func pulling<Result>(
    _ url: String, _ options: LinkOptions = .forTests, _ body: (LinkClient, PullRecord) async throws -> Result
) async throws -> Result {
    let record = PullRecord()
    let task = LinkClient.pull(try LinkURL(parsing: url), options: options, onState: { record.note($0) }) { record.note($0) }
    return try await running(task) { try await body(task, record) }
}

/// Runs a pushing link while the body runs.
func pushing<Result>(
    _ url: String, _ options: LinkOptions = .forTests, _ body: (LinkClient, PullRecord) async throws -> Result
) async throws -> Result {
    let record = PullRecord()
    let task = LinkClient.push(try LinkURL(parsing: url), options: options, onState: { record.note($0) })
    return try await running(task) { try await body(task, record) }
}

private func running<Result>(_ task: LinkClient, _ body: () async throws -> Result) async throws -> Result {
    task.start()
    let outcome: Swift.Result<Result, any Error>
    do {
        outcome = .success(try await body())
    } catch {
        outcome = .failure(TimedOut(description: "\(error) \(task.status)"))
    }
    task.stop()
    try await eventually("the link's end") {
        switch task.state {
        case .stopped, .failed: true
        default: false
        }
    }
    return try outcome.get()
}

extension FLVTag {
    func frame() throws -> Frame {
        try Frame(kind: self.kind, timestamp: Int64(self.timestamp), payload: ByteBuffer(bytes: self.payload))
    }
}

/// Offers a file's tags at the pace of their timestamps, `speed` times as fast.
func offer(_ tags: [FLVTag], to task: LinkClient, speed: Double = 1) async throws {
    let begin = ContinuousClock.now
    let first = tags.first?.timestamp ?? 0
    for tag in tags {
        let due = begin + .milliseconds(Double(tag.timestamp - min(first, tag.timestamp)) / speed)
        if due > .now { try await Task.sleep(until: due) }
        task.offer(try tag.frame())
    }
}
