package import Foundation

/// zbar's reading of QR codes.
package enum QRReader {
    /// The text of the picture's only code.
    package static func read(_ picture: URL) async throws -> String {
        let read = try await ClientProcess.run(["zbarimg", "--quiet", "--raw", "-Sdisable", "-Sqrcode.enable", picture.path])
        return read.text.trimmingCharacters(in: .newlines)
    }
}
