package decode

// Reasons lists the reasons of dead letters: a closed list, so that each can be counted
// from 0.
func Reasons() []string {
	return []string{notJSON, tooDeep, inflatedTooBig, recordTooBig, badGzip, badUTF16, unknownSchemaID, schemaMismatch, badAvro,
		badProtobuf, unknownShape,
		notAnObject, tooManyElements, decoderPanic}
}
