import FFmpeg
import LinkTransport

/// FFmpeg and librtmp: compares the running versions with those that this program was built with.
enum LibraryCheck {
    static func run() -> [DoctorResult] { [self.ffmpeg(LibraryVersion.all, LibraryVersion.missing), self.librtmp()] }

    static func ffmpeg(_ libraries: [LibraryVersion], _ missing: [String]) -> DoctorResult {
        let name = "FFmpeg"
        let wrong = libraries.filter { !$0.fits }
        guard wrong.isEmpty else {
            let words = wrong.map { "\($0.name) \($0.running), built with \($0.built)" }.joined(separator: "; ")
            return .fail(name, words, "install the package's own versions, or build the server on this machine")
        }
        let versions = libraries.map { "\($0.name) \($0.running)" }.joined(separator: ", ")
        guard missing.isEmpty else {
            return .fail(
                name, "\(LibraryVersion.release) lacks \(missing.joined(separator: ", "))",
                "install a complete FFmpeg: HLS, MP4, pictures or talk need it")
        }
        return .pass(name, "\(LibraryVersion.release) (\(versions))")
    }

    private static func librtmp() -> DoctorResult {
        LibRTMPVersion.fits
            ? .pass("librtmp", LibRTMPVersion.running)
            : .fail(
                "librtmp", "\(LibRTMPVersion.running) is another version than the program was built with",
                "install the package's own version")
    }
}
