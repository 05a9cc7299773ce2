import CommandSupport
import NIOCore

/// Plays the doctor's stream by HLS: the playlists, the beginning, pieces, and, with low latency, a reload that waits (RFC 8216bis).
struct HLSCheck {
    let clip: DoctorClip
    let http: DoctorHTTP

    private static let advice = "see the server's log for the stream; hls.always=true makes segments without viewers"
    private static let tries = 8

    /// One or two results: plain HLS, and low latency if the server offers it.
    func run(_ name: String, _ url: String) async -> [DoctorResult] {
        let playlist: Playlist
        do {
            playlist = try await self.playlist(url)
        } catch let problem as Problem {
            return [.fail(name, problem.what, PlayChecks.advice(problem.what))]
        } catch {
            let words = "\(DoctorHTTP.words(error)) (\(DoctorHTTP.origin(url)))"
            return [.fail(name, words, PlayChecks.advice(words))]
        }
        do {
            var results = [try await self.media(name, playlist)]
            if playlist.canBlock { results.append(await self.lowLatency("\(name), low latency", playlist)) }
            return results
        } catch {
            let what = (error as? Problem)?.what ?? DoctorHTTP.words(error)
            return [.fail(name, what, Self.advice)]
        }
    }

    private struct Problem: Error { let what: String }

    /// The media playlist, once it lists at least one piece.
    private func playlist(_ url: String) async throws -> Playlist {
        var address = url
        for _ in 0..<Self.tries {
            let answer = try await self.http.get(address)
            guard answer.status == 200 else { throw Problem(what: answer.refusal) }
            let text = String(buffer: answer.body)
            guard text.hasPrefix("#EXTM3U") else { throw Problem(what: "the answer is no playlist") }
            let read = Playlist(text, at: address)
            if let variant = read.variant {
                address = variant
                continue
            }
            if read.pieces.count >= 2 || read.hasSegment { return read }
            try await Task.sleep(for: .milliseconds(400))
        }
        throw Problem(what: "the playlist stays empty")
    }

    private func media(_ name: String, _ playlist: Playlist) async throws -> DoctorResult {
        var urls: [String] = playlist.map.map { [$0] } ?? []
        urls += playlist.pieces.prefix(4)
        var judge = MP4Judge(self.clip)
        var bytes = 0
        for url in urls {
            let answer = try await self.http.get(url)
            guard answer.status == 200 else { throw Problem(what: "a listed piece is not there: \(answer.refusal)") }
            bytes += answer.body.readableBytes
            var body = answer.body
            if playlist.map == nil {
                try Self.checkTransportStream(body)
            } else {
                judge.append(&body)
            }
        }
        let pieces = "\(playlist.pieces.count) pieces listed, \(urls.count) fetched (\(HumanUnits.bytes(Int64(bytes)) ?? "?"))"
        guard playlist.map != nil else { return .pass(name, "\(pieces), MPEG-TS") }
        if let missing = judge.missing(fragments: 1) { return .fail(name, missing, Self.advice) }
        return .pass(name, "\(pieces), the pushed picture is in them")
    }

    /// ISO/IEC 13818-1 §2.4.3.2: packets of 188 bytes, each begins with 0x47.
    private static func checkTransportStream(_ body: ByteBuffer) throws {
        let view = body.readableBytesView
        guard view.count >= 188, stride(from: 0, to: view.count, by: 188).allSatisfy({ view[view.startIndex + $0] == 0x47 }) else {
            throw Problem(what: "a piece is no MPEG transport stream")
        }
    }

    /// Requests the part after the last: the answer must wait for it, and must have it.
    private func lowLatency(_ name: String, _ playlist: Playlist) async -> DoctorResult {
        guard let next = playlist.next else { return .fail(name, "CAN-BLOCK-RELOAD without parts", Self.advice) }
        let clock = ContinuousClock()
        let start = clock.now
        do {
            let mark = playlist.address.contains("?") ? "&" : "?"
            let answer = try await self.http.get("\(playlist.address)\(mark)_HLS_msn=\(next.segment)&_HLS_part=\(next.part)")
            let ms = Int((clock.now - start) / .milliseconds(1))
            guard answer.status == 200 else { return .fail(name, "the waiting reload was refused: \(answer.refusal)", Self.advice) }
            let after = Playlist(String(buffer: answer.body), at: playlist.address)
            guard after.reaches(next) else {
                return .fail(
                    name, "the waiting reload came after \(ms) ms without the part",
                    "a proxy in front that caches playlists does this: let queries pass")
            }
            let parts = playlist.partTarget.map { ", parts of \(HumanUnits.decimal($0) ?? "?") s" } ?? ""
            return .pass(name, "a reload waited \(ms) ms for the next part\(parts)")
        } catch {
            return .fail(name, DoctorHTTP.words(error), Self.advice)
        }
    }
}
