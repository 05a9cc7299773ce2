import CommandSupport
import FFmpeg
import LinkTransport
import Media
import NIOCore
import NIOHTTP1
import Support
import Synchronization

/// Checks the products of the doctor's stream other than plays: recordings, pictures, talk.
struct MediaChecks: Sendable {
    let room: DoctorRoom
    let http: DoctorHTTP
    let clip: DoctorClip

    private var authorization: HTTPHeaders { self.room.api.headers }
    private func url(_ path: [String]) -> String {
        let server = self.room.api.server
        return "\(server.isTLS ? "https" : "http")://\(server.authority)\(server.target(["api", "v1"] + path))"
    }

    // MARK: Pictures

    func snapshot() async -> DoctorResult {
        let name = "snapshot"
        let advice = "see the server's log; FFmpeg's MJPEG encoder makes the pictures"
        do {
            let answer = try await self.http.get(self.url(["rooms", self.room.id, "snapshot.jpg"]), headers: self.authorization)
            guard answer.status == 200 else { return .fail(name, answer.refusal, advice) }
            guard let size = JPEGSize(answer.body) else { return .fail(name, "the answer is no JPEG picture", advice) }
            guard size.width == DoctorClip.size.width, size.height == DoctorClip.size.height else {
                return .fail(
                    name, "\(size.width) × \(size.height) pixels, pushed were \(DoctorClip.size.width) × \(DoctorClip.size.height)", advice)
            }
            return .pass(name, "\(size.width) × \(size.height) pixels, \(HumanUnits.bytes(Int64(answer.body.readableBytes)) ?? "?")")
        } catch {
            return .fail(name, DoctorHTTP.words(error), advice)
        }
    }

    // MARK: Recording

    private static let recordingAdvice = "see the server's log, and the recording folder's rights and free space (recording.minFree)"

    /// Starts a recording. Returns the result when it cannot be started.
    func startRecording() async -> DoctorResult? {
        do {
            _ = try await self.room.api.post(["rooms", self.room.id, "record"], ["action": "start"])
            return nil
        } catch {
            return .fail("recording", Self.words(error), Self.recordingAdvice)
        }
    }

    /// Stops the recording and reads the file. The room's removal deletes it.
    func finishRecording() async -> DoctorResult {
        let name = "recording"
        do {
            _ = try await self.room.api.post(["rooms", self.room.id, "record"], ["action": "stop"])
            guard let recording = try await self.closedRecording(), let id = recording["recordingId"].string else {
                return .fail(name, "nothing was recorded", Self.recordingAdvice)
            }
            guard recording["state"].string == "finished" else {
                let reason = recording["reason"].string.map { " (\($0))" } ?? ""
                return .fail(name, "the recording is \(recording["state"].string ?? "lost")\(reason)", Self.recordingAdvice)
            }
            let answer = try await self.http.get(self.url(["recordings", id, "file"]), headers: self.authorization)
            guard answer.status == 200 else { return .fail(name, "the file cannot be downloaded: \(answer.refusal)", Self.recordingAdvice) }
            var judge = MP4Judge(self.clip)
            var body = answer.body
            judge.append(&body)
            if let missing = judge.missing(fragments: 0) { return .fail(name, missing, Self.recordingAdvice) }
            let seconds = HumanUnits.decimal(recording["duration"].number, digits: 1) ?? "?"
            return .pass(name, "\(seconds) s, \(HumanUnits.bytes(Int64(answer.body.readableBytes)) ?? "?"), with the pushed picture")
        } catch {
            return .fail(name, Self.words(error), Self.recordingAdvice)
        }
    }

    /// The room's recording, once its file is seekable, a moment after the stop.
    private func closedRecording() async throws -> JSONValue? {
        let end = ContinuousClock.now + .seconds(4)
        while true {
            let recording = try await self.room.api.get(["recordings"], [("roomId", self.room.id)])["list"].list.first
            let isClosed = recording.map { $0["state"] != "recording" && $0["state"] != "finishing" } ?? true
            guard !isClosed, ContinuousClock.now < end else { return recording }
            try await Task.sleep(for: .milliseconds(100))
        }
    }

    // MARK: Talk

    /// One user speaks the clip's tone; another must hear it.
    func talk() async -> DoctorResult {
        let name = "talk"
        let advice = "see the server's log; the devices of a room need the same URLs: earshot talk"
        do {
            let speaker = try await self.room.api.post(
                ["rooms", self.room.id, "talk", "token"], ["userId": "doctor-a", "role": "host", "lifetime": 120])
            let listener = try await self.room.api.post(
                ["rooms", self.room.id, "talk", "token"], ["userId": "doctor-b", "role": "listener", "lifetime": 120])
            guard let publish = speaker["publish"].string, let play = listener["play"].string else {
                return .fail(name, "the server hands out no talk URLs", advice)
            }
            let publisher = try DoctorPublisher(self.clip, to: publish, video: false)
            defer { publisher.end() }
            if let why = await publisher.begin() { return .fail(name, "speaking: \(why)", advice) }
            let speaking = Task { await publisher.run() }
            defer { speaking.cancel() }
            let ear = ToneEar()
            let task = LinkClient.pull(try LinkURL(parsing: play), options: DoctorLink.options(), name: "doctor-hear") {
                ear.receive($0)
            }
            task.start()
            defer { task.stop() }
            let end = ContinuousClock.now + .seconds(PlayChecks.limit)
            while !ear.isDone, ContinuousClock.now < end, !Task.isCancelled {
                if case .failed = task.state {
                    let why = DoctorLink.reason(task)
                    return .fail(name, "listening: \(why)", PlayChecks.advice(why))
                }
                try? await Task.sleep(for: .milliseconds(20))
            }
            return ear.verdict(name, advice)
        } catch {
            return .fail(name, Self.words(error), advice)
        }
    }

    static func words(_ error: any Error) -> String {
        switch error {
        case let failure as CommandFailure: failure.message.split(separator: "\n").first.map(String.init) ?? failure.message
        case let error as LinkError: "\(error)"
        default: DoctorHTTP.words(error)
        }
    }
}

/// The size of a JPEG picture (ITU-T T.81 §B.2.2).
struct JPEGSize: Equatable {
    let width: Int
    let height: Int

    /// nil for an incomplete picture.
    init?(_ picture: ByteBuffer) {
        let bytes = Array(picture.readableBytesView)
        guard bytes.count > 4, bytes[0] == 0xFF, bytes[1] == 0xD8, bytes.suffix(2) == [0xFF, 0xD9] else { return nil }
        var index = 2
        while index + 9 < bytes.count, bytes[index] == 0xFF {
            let length = Int(bytes[index + 2]) << 8 | Int(bytes[index + 3])
            // SOF0 to SOF2: length (2), precision (1), height (2), width (2).
            if (0xC0...0xC2).contains(bytes[index + 1]) {
                self.height = Int(bytes[index + 5]) << 8 | Int(bytes[index + 6])
                self.width = Int(bytes[index + 7]) << 8 | Int(bytes[index + 8])
                return
            }
            index += 2 + max(2, length)
        }
        return nil
    }
}
